"""The entropy bonus."""

from surefoot.learning.terms import Minibatch, Term, TermLoss, terms
from surefoot.policies.native_parts import Plain


@terms.register("entropy")
class Entropy(Term):
    """`ppo.entropy_coef` times the negative mean entropy: exploration is rewarded."""

    def loss(self, minibatch: Minibatch) -> TermLoss:
        return TermLoss(-minibatch.output.distribution.entropy().mean())

    def native(self) -> Plain:
        return {"kind": "entropy"}
