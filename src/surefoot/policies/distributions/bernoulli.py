"""Independent binary actions; a masked one is always 0."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from surefoot.data.specs import ArraySpec
from surefoot.policies.distributions import Distribution, DistributionHead, distributions, unfit
from surefoot.policies.native_parts import Plain, PlanBuilder
from surefoot.policies.networks import orthogonal_
from surefoot.settings.config import PolicyConfig

_NEVER = -1e4
"""Logit of a masked action: its probability is exactly 0 in float32, and the gradient stays finite."""


@dataclass(frozen=True)
class Bernoulli(Distribution):
    """Logits `[B, A]` of the value 1; raw actions are 0 or 1."""

    logits: Tensor

    def sample(self, noise: Tensor) -> Tensor:
        return (noise < self.logits.sigmoid()).to(torch.int64)

    def mode(self) -> Tensor:
        return (self.logits > 0).to(torch.int64)

    def log_prob(self, action: Tensor) -> Tensor:
        signed = torch.where(action.bool(), self.logits, -self.logits)
        return functional.logsigmoid(signed).sum(-1)

    def entropy(self) -> Tensor:
        probability = self.logits.sigmoid()
        return (functional.softplus(self.logits) - probability * self.logits).sum(-1)

    def kl_divergence(self, other: Self) -> Tensor:
        one, zero = (
            (sign * self.logits).sigmoid()
            * (functional.logsigmoid(sign * self.logits) - functional.logsigmoid(sign * other.logits))
            for sign in (1, -1)
        )
        return (one + zero).sum(-1)


@distributions.register("bernoulli")
class BernoulliHead(DistributionHead):
    """Logits from features."""

    def __init__(self, latent_size: int, spec: ArraySpec, config: PolicyConfig) -> None:
        super().__init__(latent_size, spec, config)
        if spec.kind != "multi_binary":
            raise unfit("bernoulli", "MultiBinary", spec)
        self.action_shape, self.action_dtype = (spec.size,), torch.int64
        self.noise_size = spec.size
        self.logits = nn.Linear(latent_size, spec.size)
        if config.orthogonal_init:
            orthogonal_(self.logits, 0.01)

    def forward(self, latent: Tensor, action_mask: Tensor | None = None) -> Bernoulli:
        logits = self.logits(latent)
        return Bernoulli(logits if action_mask is None else logits.masked_fill(~action_mask, _NEVER))

    def mean_std(self, some: Callable[[], Distribution]) -> None:
        """Choices have none."""

    def to_env(self, action: Tensor) -> Tensor:
        return action.view(-1, *self.env_shape)

    def native(self, plan: PlanBuilder) -> Plain:
        return {"kind": "bernoulli", "layer": plan.linear(self.logits), "size": self.logits.out_features}
