"""The loss of the critic."""

import math

from surefoot.learning.terms import Minibatch, Term, TermLoss, terms
from surefoot.policies.critics import ValueTargets
from surefoot.policies.native_parts import Plain
from surefoot.settings.config import PPOConfig
from surefoot.settings.parts import PartSettings


@terms.register("value")
class Value(Term):
    """`ppo.value_coef` times the loss that the critic computes from its prediction."""

    def __init__(self, settings: PartSettings, name: str, ppo: PPOConfig) -> None:
        super().__init__(settings, name, ppo)
        self._clip = ppo.clip_value

    def loss(self, minibatch: Minibatch) -> TermLoss:
        batch = minibatch.batch
        targets = ValueTargets(batch.returns, batch.value, self._clip, batch.extras.get("prediction"))
        return TermLoss(minibatch.policy.critic.loss(minibatch.output.prediction, targets))

    def native(self) -> Plain:
        return {"kind": "value", "clip": math.inf if self._clip is None else self._clip}
