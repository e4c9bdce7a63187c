"""One choice among n, with optional action masks."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn

from surefoot.data.specs import ArraySpec
from surefoot.policies.distributions import Distribution, DistributionHead, distributions, unfit
from surefoot.policies.native_parts import Plain, PlanBuilder
from surefoot.policies.networks import orthogonal_
from surefoot.settings.config import PolicyConfig


def masked_log_softmax(logits: Tensor, mask: Tensor | None) -> Tensor:
    """Log-probabilities; masked choices get the lowest finite number, so that 0 * log 0 is 0."""
    if mask is not None:
        logits = logits.masked_fill(~mask, torch.finfo(logits.dtype).min)
    return logits.log_softmax(-1)


def inverse_cdf(log_probs: Tensor, uniform: Tensor) -> Tensor:
    """The first choice whose cumulative probability exceeds the uniform; never one of probability 0."""
    cumulative = log_probs.exp().cumsum(-1)
    threshold = uniform * cumulative[..., -1]
    return (cumulative <= threshold.unsqueeze(-1)).sum(-1)


@dataclass(frozen=True)
class Categorical(Distribution):
    """Normalized log-probabilities `[B, n]`."""

    log_probs: Tensor

    def sample(self, noise: Tensor) -> Tensor:
        return inverse_cdf(self.log_probs, noise[..., 0])

    def mode(self) -> Tensor:
        return self.log_probs.argmax(-1)

    def log_prob(self, action: Tensor) -> Tensor:
        return self.log_probs.gather(-1, action.unsqueeze(-1)).squeeze(-1)

    def entropy(self) -> Tensor:
        return -(self.log_probs.exp() * self.log_probs).sum(-1)

    def kl_divergence(self, other: Self) -> Tensor:
        return (self.log_probs.exp() * (self.log_probs - other.log_probs)).sum(-1)


@distributions.register("categorical")
class CategoricalHead(DistributionHead):
    """Logits from features."""

    noise_size = 1

    def __init__(self, latent_size: int, spec: ArraySpec, config: PolicyConfig) -> None:
        super().__init__(latent_size, spec, config)
        if spec.kind != "discrete":
            raise unfit("categorical", "Discrete", spec)
        self.action_shape, self.action_dtype = (), torch.int64
        self.start = spec.start[0]
        self.logits = nn.Linear(latent_size, spec.sizes[0])
        if config.orthogonal_init:
            orthogonal_(self.logits, 0.01)

    def forward(self, latent: Tensor, action_mask: Tensor | None = None) -> Categorical:
        return Categorical(masked_log_softmax(self.logits(latent), action_mask))

    def mean_std(self, some: Callable[[], Distribution]) -> None:
        """Choices have none."""

    def to_env(self, action: Tensor) -> Tensor:
        return action + self.start if self.start else action

    def native(self, plan: PlanBuilder) -> Plain:
        layer = plan.linear(self.logits)
        return {"kind": "categorical", "layer": layer, "sizes": [self.logits.out_features], "start": [self.start]}
