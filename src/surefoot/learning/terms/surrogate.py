"""The clipped surrogate of PPO (Schulman et al. 2017)."""

import torch
from torch import Tensor

from surefoot.learning.terms import Minibatch, Term, TermLoss, terms
from surefoot.policies.native_parts import Plain


def approx_kl(log_ratio: Tensor) -> Tensor:
    """mean((r - 1) - log r): unbiased, and never negative (Schulman's k3)."""
    return (log_ratio.expm1() - log_ratio).mean()


def clipped_surrogate(log_ratio: Tensor, advantage: Tensor, clip: float) -> Tensor:
    """-mean(min(r A, clip(r, 1 - e, 1 + e) A)), r the ratio of new to old probability."""
    ratio = log_ratio.exp()
    return -torch.minimum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage).mean()


@terms.register("surrogate")
class Surrogate(Term):
    """Improves the policy within the clip range; also measures the KL divergence and the clip fraction."""

    def loss(self, minibatch: Minibatch) -> TermLoss:
        log_ratio, clip = minibatch.log_ratio, minibatch.knobs.clip
        loss = clipped_surrogate(log_ratio, minibatch.batch.advantage, clip)
        with torch.no_grad():
            outside = (log_ratio.expm1().abs() > clip).float().mean()
            return TermLoss(loss, {"approx_kl": approx_kl(log_ratio), "clip_fraction": outside})

    def native(self) -> Plain:
        return {"kind": "surrogate"}
