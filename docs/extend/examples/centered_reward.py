"""An estimator for continuing tasks: GAE on rewards minus their running mean."""

from dataclasses import replace

from pydantic import Field

from surefoot import PartSettings
from surefoot.learning.estimators.gae import GAE


class CenteredReward(GAE):
    """Subtracts an exponential moving average of the reward before the advantages are computed."""

    class Settings(PartSettings):
        """Settings under `ppo.estimator`."""

        rate: float = Field(
            0.1, gt=0, le=1, description="share of the newest rollout in the moving average"
        )

    def __init__(self, settings, ppo):
        super().__init__(settings, ppo)
        self.rate, self.mean = settings.rate, None

    def estimate(self, rollout, critic):
        newest = float(rollout.reward[rollout.valid].mean())
        self.mean = newest if self.mean is None else self.mean + self.rate * (newest - self.mean)
        targets = super().estimate(replace(rollout, reward=rollout.reward - self.mean), critic)
        return replace(targets, metrics={"estimator/mean_reward": self.mean})

    def state(self):
        return {"mean": self.mean}

    def load_state(self, state):
        self.mean = state["mean"]
