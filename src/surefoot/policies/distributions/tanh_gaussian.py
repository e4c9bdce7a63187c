"""A Gaussian squashed by tanh into the bounds; the raw action is the value before tanh (S12, docs/semantics.md)."""

import math
from dataclasses import dataclass

import numpy as np
from torch import Tensor
from torch.nn import functional

from surefoot.data.specs import ArraySpec
from surefoot.policies.distributions import distributions, unfit
from surefoot.policies.distributions.gaussian import Gaussian, GaussianHead
from surefoot.policies.native_parts import Plain, PlanBuilder
from surefoot.settings.config import PolicyConfig

# Expectations under a normal without sampling noise. The trapezoidal rule is within 1e-6 up to a std of 3, where
# Gauss-Hermite misses the bend of log_det_tanh at 0 by 3e-3: its outer nodes are spent where there is no mass.
_NODES = np.linspace(-6, 6, 48)
_WEIGHTS = np.exp(-0.5 * _NODES**2)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


def log_det_tanh(raw: Tensor) -> Tensor:
    """log(1 - tanh(u)^2) without cancellation: 2 (log 2 - u - softplus(-2u))."""
    return 2 * (math.log(2) - raw - functional.softplus(-2 * raw))


@dataclass(frozen=True)
class TanhGaussian(Gaussian):
    """Density of tanh(u) on (-1, 1), evaluated at the raw u.

    KL divergences are those of the Gaussians: an invertible function of the action does not change them.
    """

    def log_prob(self, action: Tensor) -> Tensor:
        return super().log_prob(action) - log_det_tanh(action).sum(-1)

    def entropy(self) -> Tensor:
        nodes, weights = self.mean.new_tensor(_NODES), self.mean.new_tensor(_WEIGHTS)
        raw = self.mean.unsqueeze(-1) + self.std.unsqueeze(-1) * nodes
        return super().entropy() + (log_det_tanh(raw) @ weights).sum(-1)


@distributions.register("tanh_gaussian")
class TanhGaussianHead(GaussianHead):
    """Requires finite bounds; actions reach them only in the limit."""

    def __init__(self, latent_size: int, spec: ArraySpec, config: PolicyConfig) -> None:
        if spec.kind != "box" or not spec.is_bounded:
            raise unfit("tanh_gaussian", "bounded Box", spec)
        super().__init__(latent_size, spec, config)

    def forward(self, latent: Tensor, action_mask: Tensor | None = None) -> TanhGaussian:
        base = super().forward(latent)
        assert isinstance(base, Gaussian)
        return TanhGaussian(base.mean, base.std)

    def to_env(self, action: Tensor) -> Tensor:
        scaled = self.low + (action.tanh() + 1) * (0.5 * (self.high - self.low))
        return scaled.view(-1, *self.env_shape)

    def native(self, plan: PlanBuilder) -> Plain:
        return self.native_gaussian(plan, "tanh_gaussian")
