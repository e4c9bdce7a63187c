"""A penalty on the KL divergence of the old policy from the new one (Schulman et al. 2017, section 4)."""

from pydantic import Field

from surefoot.learning.terms import Minibatch, Term, TermLoss, terms
from surefoot.learning.terms.surrogate import approx_kl
from surefoot.policies.native_parts import Plain
from surefoot.settings.parts import Knob, PartSettings


@terms.register("kl_penalty")
class KLPenalty(Term):
    """Penalizes the KL divergence of the old policy from the new one, estimated from the samples.

    mean(r - 1 - log r) over samples of the old policy. Its gradient estimates that of KL(old || new) without bias, and
    unlike that of mean(-log r) it is exactly 0 where the policies agree.
    """

    class Settings(PartSettings):
        """The weight."""

        weight: Knob = Field(0.1, description="weight of the penalty")

    def loss(self, minibatch: Minibatch) -> TermLoss:
        return TermLoss(approx_kl(minibatch.log_ratio))

    def native(self) -> Plain:
        return {"kind": "kl_penalty"}
