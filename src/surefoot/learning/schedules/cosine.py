"""Cosine decay to a floor."""

import math

from pydantic import Field

from surefoot.data.records import Progress
from surefoot.learning.schedules import Schedule, schedules
from surefoot.settings.config import Fraction
from surefoot.settings.parts import PartSettings


@schedules.register("cosine")
class Cosine(Schedule):
    """start * (floor + (1 - floor) (1 + cos(pi fraction)) / 2)."""

    class Settings(PartSettings):
        """The floor of the decay."""

        floor: Fraction = Field(0.1, description="value at the end of the run, as a fraction of the start value")

    def __init__(self, settings: Settings, start: float) -> None:
        super().__init__(settings, start)
        self._floor = settings.floor

    def value(self, progress: Progress) -> float:
        wave = 0.5 * (1 + math.cos(math.pi * progress.fraction))
        return self.start * (self._floor + (1 - self._floor) * wave)
