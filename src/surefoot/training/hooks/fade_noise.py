"""Lowers the exploration noise of continuous actions during a run."""

from pydantic import Field

from surefoot.settings.config import Positive
from surefoot.settings.parts import PartSettings
from surefoot.training.hooks import Hook, hooks


@hooks.register("fade_noise")
class FadeNoise(Hook):
    """An upper limit of the standard deviation of actions that falls geometrically, then stays.

    The policy can still learn a smaller one. This matters where noise is part of what is optimized, as in objectives
    with CVaR: the tail of a noisy policy is to a large part that of its noise.
    """

    class Settings(PartSettings):
        """The limits, and when the last one is reached."""

        start: Positive = Field(1.0, description="upper limit of the standard deviation at the start of the run")
        end: Positive = Field(0.05, description="upper limit at the end; policy.distribution.std_floor still holds")
        until: Positive = Field(0.3, le=1, description="fraction of the run after which the limit stays at its end")

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._settings = settings

    def before_rollout(self) -> None:
        settings = self._settings
        share = min(1.0, self.run.progress.fraction / settings.until)
        self.run.policy.head.limit_std(settings.start ** (1 - share) * settings.end**share)
