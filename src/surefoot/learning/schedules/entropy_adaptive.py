"""Closed loop: decays after the entropy has stopped moving, and boosts while it has collapsed."""

import math
from statistics import linear_regression
from typing import Any

from pydantic import Field

from surefoot.data.records import Learned, Progress
from surefoot.learning.schedules import Schedule, schedules
from surefoot.settings.config import Fraction, Positive
from surefoot.settings.parts import PartSettings
from surefoot.storage.saved import Saved


@schedules.register("entropy_adaptive")
class EntropyAdaptive(Schedule):
    """Holds the value until the entropy has reached a plateau, then decays it; boosts it while the entropy is too low.

    Thresholds are in nats, not ratios: the entropy of continuous actions may be negative.
    """

    class Settings(PartSettings):
        """Plateau, decay and boost."""

        window: int = Field(24, ge=2, description="number of updates over which the slope of the entropy is measured")
        slope: Positive = Field(0.002, description="nats per update; a slope below it, up or down, is a plateau")
        decay_updates: int = Field(100, ge=1, description="number of updates of the linear decay to the floor")
        floor: Fraction = Field(0.5, description="lowest value, as a fraction of the start value")
        collapse: float | None = Field(
            None, allow_inf_nan=False, description="entropy in nats below which the value is boosted; none: never"
        )
        recovery: float = Field(
            0.1, ge=0, allow_inf_nan=False, description="nats above `collapse` at which the boost ends"
        )
        boost: float = Field(2.0, ge=1, allow_inf_nan=False, description="factor of the value while it is boosted")

    def __init__(self, settings: Settings, start: float) -> None:
        super().__init__(settings, start)
        self._settings = settings
        self._entropies: list[float] = []
        self._decayed = 0
        """Number of updates of the decay so far; 0 before the plateau."""
        self._is_boosted = False

    def value(self, progress: Progress) -> float:
        settings = self._settings
        left = 1 - min(1.0, self._decayed / settings.decay_updates)
        fraction = settings.floor + (1 - settings.floor) * left
        return self.start * max(settings.floor, fraction * (settings.boost if self._is_boosted else 1.0))

    def observe(self, learned: Learned) -> None:
        if not math.isfinite(learned.entropy):
            return
        settings = self._settings
        collapse = -math.inf if settings.collapse is None else settings.collapse
        self._is_boosted = learned.entropy < collapse + (settings.recovery if self._is_boosted else 0.0)
        if self._is_boosted:
            self._entropies.clear()  # a collapsed policy has a plateau, too: it must not start the decay
            return
        self._entropies = [*self._entropies, learned.entropy][-settings.window :]
        if self._decayed or self._is_plateau():
            self._decayed += 1

    def _is_plateau(self) -> bool:
        count = len(self._entropies)
        if count < self._settings.window:
            return False
        return abs(linear_regression(range(count), self._entropies).slope) < self._settings.slope

    def state(self) -> dict[str, Any]:
        return {"entropies": list(self._entropies), "decayed": self._decayed, "is_boosted": self._is_boosted}

    def check_state(self, saved: Saved) -> None:
        for entropy in saved["entropies"].items():
            entropy.number()
        saved["decayed"].integer()
        if not isinstance(saved["is_boosted"].value, bool):
            raise saved["is_boosted"].wrong("true or false")

    def load_state(self, state: dict[str, Any]) -> None:
        self._entropies = [float(entropy) for entropy in state["entropies"]]
        self._decayed, self._is_boosted = int(state["decayed"]), state["is_boosted"]
