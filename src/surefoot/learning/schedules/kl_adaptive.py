"""Closed loop: adapts to the KL divergence of the updates (like RSL-RL's adaptive learning rate)."""

from typing import Annotated, Any

from pydantic import Field

from surefoot.data.records import Learned, Progress
from surefoot.learning.schedules import Schedule, schedules
from surefoot.settings.config import Positive
from surefoot.settings.parts import PartSettings
from surefoot.storage.saved import Saved

Factor = Annotated[float, Field(gt=1, allow_inf_nan=False)]


@schedules.register("kl_adaptive")
class KLAdaptive(Schedule):
    """Decreases the value (a learning rate) if the KL divergence is too large, increases it if it is too small."""

    class Settings(PartSettings):
        """Target and limits."""

        desired_kl: Positive = Field(0.01, description="target KL divergence per update")
        tolerance: Factor = Field(2.0, description="factor above or below the target at which the value changes")
        factor: Factor = Field(1.5, description="factor by which the value changes")
        low: Positive = Field(1e-6, description="lower limit of the value")
        high: Positive = Field(1e-2, description="upper limit of the value")

    raises_if_too_large = False
    """Whether a larger value makes the KL divergence smaller."""

    def __init__(self, settings: Settings, start: float) -> None:
        super().__init__(settings, start)
        self._settings, self._value = settings, start

    def value(self, progress: Progress) -> float:
        return self._value

    def observe(self, learned: Learned) -> None:
        settings = self._settings
        is_too_large = learned.approx_kl > settings.desired_kl * settings.tolerance
        if not is_too_large and not learned.approx_kl < settings.desired_kl / settings.tolerance:
            return
        raises = is_too_large == self.raises_if_too_large
        changed = self._value * settings.factor if raises else self._value / settings.factor
        self._value = min(settings.high, max(settings.low, changed))

    def state(self) -> dict[str, Any]:
        return {"value": self._value}

    def check_state(self, saved: Saved) -> None:
        saved["value"].number(least=0)

    def load_state(self, state: dict[str, Any]) -> None:
        self._value = float(state["value"])
