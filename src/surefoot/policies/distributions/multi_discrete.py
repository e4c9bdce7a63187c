"""Several independent choices, padded to one table so that they are computed together."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn

from surefoot.data.specs import ArraySpec
from surefoot.policies.distributions import Distribution, DistributionHead, distributions, unfit
from surefoot.policies.distributions.categorical import inverse_cdf, masked_log_softmax
from surefoot.policies.native_parts import Plain, PlanBuilder
from surefoot.policies.networks import orthogonal_
from surefoot.settings.config import PolicyConfig


@dataclass(frozen=True)
class MultiCategorical(Distribution):
    """Log-probabilities `[B, A, most choices]`."""

    log_probs: Tensor

    def sample(self, noise: Tensor) -> Tensor:
        return inverse_cdf(self.log_probs, noise)

    def mode(self) -> Tensor:
        return self.log_probs.argmax(-1)

    def log_prob(self, action: Tensor) -> Tensor:
        return self.log_probs.gather(-1, action.unsqueeze(-1)).squeeze(-1).sum(-1)

    def entropy(self) -> Tensor:
        return -(self.log_probs.exp() * self.log_probs).sum((-1, -2))

    def kl_divergence(self, other: Self) -> Tensor:
        return (self.log_probs.exp() * (self.log_probs - other.log_probs)).sum((-1, -2))


@distributions.register("multi_discrete")
class MultiDiscreteHead(DistributionHead):
    """Masks and logits are concatenated, `sum(sizes)` long, and copied to the padded table."""

    start: Tensor
    present: Tensor
    places: Tensor

    def __init__(self, latent_size: int, spec: ArraySpec, config: PolicyConfig) -> None:
        super().__init__(latent_size, spec, config)
        if spec.kind != "multi_discrete":
            raise unfit("multi_discrete", "MultiDiscrete", spec)
        self.action_shape, self.action_dtype = (spec.size,), torch.int64
        self.noise_size = spec.size
        sizes = torch.tensor(spec.sizes)
        present = torch.arange(max(spec.sizes)) < sizes[:, None]
        self.register_buffer("present", present, persistent=False)
        # The source index of each entry of the table; padding has index 0 and is masked.
        places = torch.zeros(present.shape, dtype=torch.int64).masked_scatter(present, torch.arange(sum(spec.sizes)))
        self.register_buffer("places", places.flatten(), persistent=False)
        self.register_buffer("start", torch.tensor(spec.start), persistent=False)
        self.logits = nn.Linear(latent_size, sum(spec.sizes))
        if config.orthogonal_init:
            orthogonal_(self.logits, 0.01)

    def forward(self, latent: Tensor, action_mask: Tensor | None = None) -> MultiCategorical:
        allowed = self.present if action_mask is None else self.present & self._table(action_mask)
        return MultiCategorical(masked_log_softmax(self._table(self.logits(latent)), allowed))

    def mean_std(self, some: Callable[[], Distribution]) -> None:
        """Choices have none."""

    def to_env(self, action: Tensor) -> Tensor:
        return (action + self.start).view(-1, *self.env_shape)

    def native(self, plan: PlanBuilder) -> Plain:
        sizes, start = self.present.sum(-1).tolist(), self.start.flatten().tolist()
        return {"kind": "multi_discrete", "layer": plan.linear(self.logits), "sizes": sizes, "start": start}

    def _table(self, concatenated: Tensor) -> Tensor:
        return concatenated.index_select(1, self.places).view(-1, *self.present.shape)
