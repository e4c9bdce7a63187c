"""Beta distribution over the action bounds (Chou et al. 2017): bounded actions without clipping."""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from surefoot.data.specs import ArraySpec
from surefoot.policies.box_muller import box_muller
from surefoot.policies.distributions import Distribution, DistributionHead, distributions, unfit
from surefoot.policies.distributions.gaussian import register_bounds
from surefoot.policies.native_parts import Plain, PlanBuilder
from surefoot.policies.networks import orthogonal_
from surefoot.settings.config import PolicyConfig

_EDGE = 1e-6
"""Minimum distance of samples from 0 and 1: above float32's spacing at 1, so that log-probs are finite."""
_ATTEMPTS = 8
"""Number of rejection rounds; all fail with probability below 1e-10, then the last proposal is used."""


def gamma_sample(shape: Tensor, normal: Tensor, uniform: Tensor) -> Tensor:
    """Gamma(shape >= 1) by Marsaglia and Tsang (2000), from `_ATTEMPTS` proposals on the last axis."""
    d = (shape - 1 / 3).unsqueeze(-1)
    cubed = (1 + normal / (9 * d).sqrt()) ** 3
    positive = cubed.clamp_min(1e-12)
    bound = 0.5 * normal.square() + d * (1 - positive + positive.log())
    accepted = (cubed > 0) & (torch.log(uniform.clamp_min(1e-12)) < bound)
    accepted[..., -1] = True
    first = accepted.to(torch.int8).argmax(-1, keepdim=True)
    return (d * positive).gather(-1, first).squeeze(-1)


@dataclass(frozen=True)
class Beta(Distribution):
    """Independent Betas on (0, 1); raw actions are in the unit interval."""

    alpha: Tensor
    beta: Tensor

    def sample(self, noise: Tensor) -> Tensor:
        normal, uniform = noise.unflatten(-1, (-1, 2, 2, _ATTEMPTS)).unbind(-2)
        shapes = torch.stack((self.alpha, self.beta), dim=-1)
        first, second = gamma_sample(shapes, normal, uniform).unbind(-1)
        return (first / (first + second)).clamp(_EDGE, 1 - _EDGE)

    def mode(self) -> Tensor:
        peak = (self.alpha - 1) / (self.alpha + self.beta - 2)
        # Both concentrations can round to 1: the uniform has no mode, so use its center.
        return peak.nan_to_num(0.5).clamp(_EDGE, 1 - _EDGE)

    def mean(self) -> Tensor:
        """Expected raw action."""
        return self.alpha / (self.alpha + self.beta)

    def log_prob(self, action: Tensor) -> Tensor:
        inside = action.clamp(_EDGE, 1 - _EDGE)
        density = (self.alpha - 1) * inside.log() + (self.beta - 1) * torch.log1p(-inside)
        return (density - self._log_normalizer()).sum(-1)

    def entropy(self) -> Tensor:
        total = self.alpha + self.beta
        return (
            self._log_normalizer()
            - (self.alpha - 1) * torch.digamma(self.alpha)
            - (self.beta - 1) * torch.digamma(self.beta)
            + (total - 2) * torch.digamma(total)
        ).sum(-1)

    def kl_divergence(self, other: Self) -> Tensor:
        alpha, beta = self.alpha - other.alpha, self.beta - other.beta
        return (
            other._log_normalizer()
            - self._log_normalizer()
            + alpha * torch.digamma(self.alpha)
            + beta * torch.digamma(self.beta)
            - (alpha + beta) * torch.digamma(self.alpha + self.beta)
        ).sum(-1)

    def mean_std(self) -> Tensor:
        total = self.alpha + self.beta
        return (self.alpha * self.beta / (total.square() * (total + 1))).sqrt().mean()

    def _log_normalizer(self) -> Tensor:
        total = self.alpha + self.beta
        return torch.lgamma(self.alpha) + torch.lgamma(self.beta) - torch.lgamma(total)


@distributions.register("beta")
class BetaHead(DistributionHead):
    """alpha, beta = 1 + softplus(features): unimodal, never U-shaped."""

    low: Tensor
    high: Tensor

    def __init__(self, latent_size: int, spec: ArraySpec, config: PolicyConfig) -> None:
        super().__init__(latent_size, spec, config)
        if spec.kind != "box" or not spec.is_bounded:
            raise unfit("beta", "bounded Box", spec)
        self.action_shape, self.action_dtype = (spec.size,), torch.float32
        # Two gammas per element, each with a normal and a uniform per attempt.
        self.noise_size = spec.size * 2 * 2 * _ATTEMPTS
        self.concentrations = nn.Linear(latent_size, 2 * spec.size)
        if config.orthogonal_init:
            orthogonal_(self.concentrations, 0.01)
        register_bounds(self, spec)

    def forward(self, latent: Tensor, action_mask: Tensor | None = None) -> Beta:
        both = 1 + functional.softplus(self.concentrations(latent))
        return Beta(*both.chunk(2, dim=-1))

    def noise(self, uniforms: Tensor) -> Tensor:
        drawn = uniforms.unflatten(-1, (-1, 2, _ATTEMPTS))
        return torch.stack((box_muller(drawn[..., 0, :]), drawn[..., 1, :]), dim=-2).flatten(-3)

    def to_env(self, action: Tensor) -> Tensor:
        return (self.low + action * (self.high - self.low)).view(-1, *self.env_shape)

    def native(self, plan: PlanBuilder) -> Plain:
        layer = plan.linear(self.concentrations)
        return {"kind": "beta", "layer": layer, "low": self.low.tolist(), "high": self.high.tolist()}
