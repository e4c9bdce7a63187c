"""Closed loop: the adaptive KL coefficient of PPO (Schulman et al. 2017, section 4)."""

from pydantic import Field

from surefoot.learning.schedules import schedules
from surefoot.learning.schedules.kl_adaptive import Factor, KLAdaptive
from surefoot.settings.config import Positive


@schedules.register("kl_penalty")
class KLPenalty(KLAdaptive):
    """Increases the value (the weight of a KL penalty) if the KL divergence is too large, and the other way round."""

    class Settings(KLAdaptive.Settings):
        """Target and limits, with the factors of the paper."""

        tolerance: Factor = Field(1.5, description="factor above or below the target at which the value changes")
        factor: Factor = Field(2.0, description="factor by which the value changes")
        low: Positive = Field(1e-4, description="lower limit of the value")
        high: Positive = Field(100.0, description="upper limit of the value")

    raises_if_too_large = True
