"""Scores a rollout: scales rewards, estimates the targets, and normalizes advantages."""

from dataclasses import replace
from typing import Any

from surefoot.data.moments import normalized
from surefoot.data.records import Rollout, Targets
from surefoot.errors import ConfigError
from surefoot.learning.estimators import Estimator, estimators
from surefoot.learning.native_returns import suits_core
from surefoot.learning.native_statistics import normalized_in_core
from surefoot.learning.reward_scaler import RewardScaler
from surefoot.native.kernels import faster_by
from surefoot.policies.critics import Critic
from surefoot.rollout.shared import of_all_processes
from surefoot.settings.config import PPOConfig
from surefoot.storage.saved import Saved
from surefoot.storage.state import check_present

_normalized = faster_by(normalized_in_core, suits_core)(normalized)


class Scorer:
    """Owns the estimator and the reward statistics, if rewards are scaled."""

    def __init__(self, ppo: PPOConfig, reward_scaler: RewardScaler | None = None) -> None:
        self._norm, self.reward_scaler = ppo.advantage_norm, reward_scaler
        self.estimator: Estimator = estimators[ppo.estimator.kind](ppo.estimator, ppo)
        if self.estimator.takes_raw_rewards and reward_scaler is not None:
            raise ConfigError(
                [f"normalize.reward: set it to false for ppo.estimator {ppo.estimator.kind}; normalize.returns works"]
            )

    def score(self, rollout: Rollout, critic: Critic) -> Targets:
        """The targets of all processes' rows; advantages are normalized if `ppo.advantage_norm` is `rollout`."""
        rollout = of_all_processes(rollout)
        if self.reward_scaler is not None:
            rollout = replace(rollout, reward=self.reward_scaler.scale(rollout))
        targets = self.estimator.estimate(rollout, critic)
        if self._norm != "rollout":
            return targets
        return replace(targets, advantage=_normalized(targets.advantage, rollout.valid))

    def forget_running(self) -> None:
        """The episodes of the rows were cut off: only statistics of finished ones stay."""
        if self.reward_scaler is not None:
            self.reward_scaler.forget_running()
        self.estimator.forget_running()

    def state(self) -> dict[str, Any]:
        """For checkpoints."""
        scaler = None if self.reward_scaler is None else self.reward_scaler.state()
        return {"reward_scaler": scaler, "estimator": self.estimator.state()}

    def check_state(self, saved: Saved) -> None:
        """Check the statistics and the state of the estimator."""
        scaler = saved["reward_scaler"]
        if self.reward_scaler is not None and scaler.value is not None:
            self.reward_scaler.check_state(scaler)
        check_present({"estimator": self.estimator}, saved)
        saved["estimator"].entries()

    def load_state(self, state: dict[str, Any]) -> None:
        """From a checkpoint."""
        if self.reward_scaler is not None and state["reward_scaler"] is not None:
            self.reward_scaler.load_state(state["reward_scaler"])
        self.estimator.load_state(state["estimator"])
