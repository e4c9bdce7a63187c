"""Cloning: imitate labels, the actions of a teacher or of recorded data."""

from pydantic import Field
from torch import Tensor

from surefoot.data.specs import ArraySpec
from surefoot.learning.terms import Minibatch, Term, TermLoss, terms
from surefoot.policies.native_parts import Plain
from surefoot.policies.policy import Policy
from surefoot.settings.config import PPOConfig
from surefoot.settings.parts import Knob, PartSettings


@terms.register("clone")
class Clone(Term):
    """The negative mean log-probability of labels: actions that a hook adds to each rollout.

    Labels are raw actions, as `distribution.mode()` returns them. The term also learns from the rows in which other
    policies act: a teacher that acts shows the states that it leads to.
    """

    learns_from_all_rows = True

    class Settings(PartSettings):
        """The weight, and the name of the labels."""

        weight: Knob = Field(1.0, description="weight of the term")
        label: str = Field("label", min_length=1, description="extra of the rollout that has the labels")

    def __init__(self, settings: Settings, name: str, ppo: PPOConfig) -> None:
        super().__init__(settings, name, ppo)
        self._label = settings.label

    def extras(self, policy: Policy) -> dict[str, ArraySpec]:
        head = policy.head
        return {self._label: ArraySpec("box", head.action_shape, str(head.action_dtype).removeprefix("torch."))}

    def loss(self, minibatch: Minibatch) -> TermLoss:
        label: Tensor = minibatch.batch.extras[self._label]
        return TermLoss(-minibatch.output.distribution.log_prob(label).mean())

    def native(self) -> Plain:
        return {"kind": "clone", "label": self._label}
