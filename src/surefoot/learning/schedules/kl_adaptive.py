"""Closed loop: adapts to the KL divergence of the updates (like RSL-RL's adaptive learning rate)."""

from typing import Any

from pydantic import Field

from surefoot.core.config import Positive
from surefoot.core.parts import PartSettings
from surefoot.core.records import Learned, Progress
from surefoot.core.saved import Saved
from surefoot.learning.schedules import Schedule, schedules


@schedules.register("kl_adaptive")
class KLAdaptive(Schedule):
    """Decreases the value if the KL divergence is above twice the desired one, increases it if below half of it."""

    class Settings(PartSettings):
        """Target and limits."""

        desired_kl: Positive = Field(0.01, description="target KL divergence per update")
        factor: float = Field(1.5, gt=1, description="factor by which the value changes")
        low: Positive = Field(1e-6, description="lower limit of the value")
        high: Positive = Field(1e-2, description="upper limit of the value")

    def __init__(self, settings: Settings, start: float) -> None:
        super().__init__(settings, start)
        self._settings, self._value = settings, start

    def value(self, progress: Progress) -> float:
        return self._value

    def observe(self, learned: Learned) -> None:
        settings = self._settings
        if learned.approx_kl > 2 * settings.desired_kl:
            self._value = max(settings.low, self._value / settings.factor)
        elif learned.approx_kl < settings.desired_kl / 2:
            self._value = min(settings.high, self._value * settings.factor)

    def state(self) -> dict[str, Any]:
        return {"value": self._value}

    def check_state(self, saved: Saved) -> None:
        saved["value"].number(least=0)

    def load_state(self, state: dict[str, Any]) -> None:
        self._value = float(state["value"])
