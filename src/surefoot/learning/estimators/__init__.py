"""Estimators turn a rollout into advantages and returns; one file per estimator."""

from typing import Any

from surefoot.data.records import Rollout, Targets
from surefoot.policies.critics import Critic
from surefoot.settings.config import PPOConfig
from surefoot.settings.parts import PartSettings
from surefoot.settings.registry import Registry


class Estimator:
    """Base class of estimators. Rewards are scaled if `normalize.reward` is set; `rollout.stats` has raw returns."""

    takes_raw_rewards = False
    """Whether rewards must be those of the env; then `normalize.reward` is refused."""

    def __init__(self, settings: PartSettings, ppo: PPOConfig) -> None:
        pass

    def estimate(self, rollout: Rollout, critic: Critic) -> Targets:
        """Advantages and returns `[T, N]`, and metrics by full name."""
        raise NotImplementedError

    def forget_running(self) -> None:
        """The episodes of the rows were cut off: forget what belongs to them."""

    def state(self) -> dict[str, Any]:
        """For checkpoints."""
        return {}

    def load_state(self, state: dict[str, Any]) -> None:
        """From a checkpoint."""


estimators: Registry[Estimator] = Registry(
    "estimator", "surefoot.learning.estimators", "ppo.estimator", base="Estimator"
)
