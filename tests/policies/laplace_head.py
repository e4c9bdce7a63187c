"""A head from outside the package, in one file; cpp/tests/laplace_head.cpp is its native side."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from surefoot.data.specs import ArraySpec
from surefoot.policies.distributions import Distribution, DistributionHead
from surefoot.policies.native_parts import Plain, PlanBuilder


@dataclass(frozen=True)
class Laplace(Distribution):
    """Independent Laplace distributions of one scale."""

    location: Tensor
    scale: float

    def sample(self, noise: Tensor) -> Tensor:
        return self.location + self.scale * noise

    def mode(self) -> Tensor:
        return self.location

    def log_prob(self, action: Tensor) -> Tensor:
        return (-(action - self.location).abs() / self.scale - math.log(2 * self.scale)).sum(-1)

    def entropy(self) -> Tensor:
        return torch.full(self.location.shape[:-1], self.location.shape[-1] * (1 + math.log(2 * self.scale)))


class LaplaceHead(DistributionHead):
    """Location from features; actions are not clipped."""

    def __init__(self, latent_size: int, spec: ArraySpec, config: Any, scale: float = 0.5) -> None:
        super().__init__(latent_size, spec, config)
        self.action_shape, self.action_dtype, self.noise_size = (spec.size,), torch.float32, spec.size
        self.location, self.scale = nn.Linear(latent_size, spec.size), scale

    def forward(self, latent: Tensor, action_mask: Tensor | None = None) -> Laplace:
        return Laplace(self.location(latent), self.scale)

    def noise(self, uniforms: Tensor) -> Tensor:
        centered = uniforms.double() - 0.5
        return (-torch.log((1 - 2 * centered.abs()).clamp_min(1e-12))).copysign(centered).float()

    def to_env(self, action: Tensor) -> Tensor:
        return action.view(-1, *self.env_shape)

    def native(self, plan: PlanBuilder) -> Plain:
        return {
            "kind": "laplace",
            "layer": plan.linear(self.location),
            "size": self.location.out_features,
            "scale": self.scale,
        }
