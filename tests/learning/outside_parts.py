"""Parts outside the package, as users write them: a term, a gradient transform, an estimator and a schedule."""

from dataclasses import replace
from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from surefoot import Estimator, GradientTransform, Knob, PartSettings, Schedule, Term, TermLoss
from surefoot.data.records import Knobs, Learned, Progress, Rollout, Targets
from surefoot.learning.estimators.gae import GAE
from surefoot.learning.terms import Minibatch
from surefoot.learning.transforms import Layout
from surefoot.policies.critics import Critic
from surefoot.settings.config import PPOConfig


class Smooth(Term):
    """Penalizes policies that act differently where observations differ by a little: it runs the policy again."""

    class Settings(PartSettings):
        weight: Knob = Field(0.5, description="weight of the penalty")
        distance: float = Field(0.1, description="how far observations are moved")

    def __init__(self, settings: Settings, name: str, ppo: PPOConfig) -> None:
        super().__init__(settings, name, ppo)
        self._distance, self.updates = settings.distance, 0

    def loss(self, minibatch: Minibatch) -> TermLoss:
        batch = minibatch.batch
        moved = minibatch.policy(*replace(batch, obs=batch.obs + self._distance * (1 + self.updates % 3)).inputs)
        apart = moved.distribution.log_prob(batch.action) - minibatch.output.distribution.log_prob(batch.action)
        return TermLoss(apart.square().mean(), {"apart": apart.abs().mean()})

    def observe(self, learned: Learned) -> None:
        self.updates += 1

    def state(self) -> dict[str, Any]:
        return {"updates": self.updates}

    def load_state(self, state: dict[str, Any]) -> None:
        self.updates = state["updates"]


class Heavy(GradientTransform):
    """Momentum before Adam."""

    class Settings(PartSettings):
        decay: Knob = Field(0.5, description="share of the past")

    def __init__(self, settings: Settings, name: str, layout: Layout) -> None:
        super().__init__(settings, name, layout)
        self._past = torch.zeros(max(place.stop for place in layout.values()))

    def apply(self, gradient: Tensor, knobs: Knobs) -> Tensor:
        self._past.mul_(knobs[f"{self.name}.decay"]).add_(gradient)
        return self._past.clone()

    def metrics(self) -> dict[str, Tensor]:
        return {"size": self._past.norm()}

    def state(self) -> dict[str, Any]:
        return {"past": self._past.clone()}

    def load_state(self, state: dict[str, Any]) -> None:
        self._past.copy_(state["past"])


class Cautious(Estimator):
    """GAE less a running mean of the rewards, which it remembers."""

    class Settings(PartSettings):
        share: float = Field(0.5, description="share of the last rollout")

    def __init__(self, settings: Settings, ppo: PPOConfig) -> None:
        super().__init__(settings, ppo)
        self._gae, self._share, self.mean = GAE(settings, ppo), settings.share, 0.0

    def estimate(self, rollout: Rollout, critic: Critic) -> Targets:
        self.mean += self._share * (float(rollout.reward.mean()) - self.mean)
        targets = self._gae.estimate(replace(rollout, reward=rollout.reward - self.mean), critic)
        return replace(targets, metrics={"cautious/mean": self.mean})

    def state(self) -> dict[str, Any]:
        return {"mean": self.mean}

    def load_state(self, state: dict[str, Any]) -> None:
        self.mean = state["mean"]


class EntropyTarget(Schedule):
    """Closed loop: more weight on the entropy while it is below a target, less while it is above."""

    class Settings(PartSettings):
        target: float = Field(100.0, description="entropy to aim at")

    def __init__(self, settings: Settings, start: float) -> None:
        super().__init__(settings, start)
        self._target, self._value = settings.target, start

    def value(self, progress: Progress) -> float:
        return self._value

    def observe(self, learned: Learned) -> None:
        self._value *= 1.25 if learned.entropy < self._target else 0.8

    def state(self) -> dict[str, Any]:
        return {"value": self._value}

    def load_state(self, state: dict[str, Any]) -> None:
        self._value = state["value"]


class NotATerm:
    """Nothing that could be added to a loss."""
