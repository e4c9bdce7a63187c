"""Diagonal Gaussian with a fixed, learned or state-dependent standard deviation."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from surefoot.core.config import PolicyConfig
from surefoot.core.errors import ConfigError, PolicyError
from surefoot.core.specs import ArraySpec
from surefoot.policies.box_muller import box_muller
from surefoot.policies.distributions import Distribution, DistributionHead, distributions
from surefoot.policies.networks import orthogonal_

_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True)
class Gaussian(Distribution):
    """Independent normals; `std` is `[A]` or `[B, A]`."""

    mean: Tensor
    std: Tensor

    def sample(self, noise: Tensor) -> Tensor:
        return self.mean + self.std * noise[..., : self.mean.shape[-1]]

    def mode(self) -> Tensor:
        return self.mean

    def log_prob(self, action: Tensor) -> Tensor:
        squares = ((action - self.mean) / self.std).square().sum(-1)
        return -0.5 * squares - (self.std.log() + _HALF_LOG_2PI).sum(-1)

    def entropy(self) -> Tensor:
        entropy = (self.std.log() + (0.5 + _HALF_LOG_2PI)).sum(-1)
        return entropy.expand(self.mean.shape[:-1])

    def mean_std(self) -> Tensor:
        return self.std.mean()


@distributions.register("gaussian")
class GaussianHead(DistributionHead):
    """Mean from features; std = floor + exp(parameter), so the floor holds and the gradient never dies there."""

    low: Tensor
    high: Tensor

    def __init__(self, latent_size: int, spec: ArraySpec, config: PolicyConfig) -> None:
        super().__init__(latent_size, spec, config)
        if spec.kind != "box":
            raise PolicyError(f"a Gaussian needs a Box action, not {spec.kind}; set policy.distribution to auto")
        self.action_shape, self.action_dtype = (spec.size,), torch.float32
        self.noise_size = spec.size + spec.size % 2
        self.mean = nn.Linear(latent_size, spec.size)
        self.std_floor = config.std_floor
        self.rescale = config.action_bounds == "rescale" and spec.is_bounded
        register_bounds(self, spec)
        parameter = initial_log_excess(spec.size, config)
        self.std_layer = nn.Linear(latent_size, spec.size) if config.std == "state" else None
        self.log_std = nn.Parameter(parameter, requires_grad=config.std == "learned")
        if config.orthogonal_init:
            orthogonal_(self.mean, 0.01)
        if self.std_layer is not None:
            orthogonal_(self.std_layer, 0.01)

    def forward(self, latent: Tensor, action_mask: Tensor | None = None) -> Distribution:
        raw = self.log_std if self.std_layer is None else self.log_std + self.std_layer(latent)
        return Gaussian(self.mean(latent), self.std_floor + raw.exp())

    def noise(self, uniforms: Tensor) -> Tensor:
        return box_muller(uniforms)

    def to_env(self, action: Tensor) -> Tensor:
        if self.rescale:
            action = self.low + (action + 1) * (0.5 * (self.high - self.low))
        return action.clamp(self.low, self.high).view(-1, *self.env_shape)


def register_bounds(head: DistributionHead, spec: ArraySpec) -> None:
    """Give a head the action's bounds as flat buffers `low` and `high`."""
    for name, bound in zip(("low", "high"), spec.bounds(), strict=True):
        flat = torch.as_tensor(bound.ravel(), dtype=torch.float32)
        head.register_buffer(name, flat, persistent=False)


def initial_log_excess(size: int, config: PolicyConfig) -> Tensor:
    """The parameter whose floor + exp is the configured initial std of each action element."""
    log_std = torch.full((size,), config.log_std)
    for key, value in config.log_std_groups.items():
        start, stop = (int(part) for part in key.split(":"))
        if stop > size:
            raise ConfigError([f"policy.log_std_groups: '{key}' reaches past the action's {size} elements"])
        log_std[start:stop] = value
    if bool((log_std.exp() <= config.std_floor).any()):
        raise ConfigError(
            [f"policy.log_std: an initial std below policy.std_floor {config.std_floor}; raise one or lower the other"]
        )
    return (log_std.exp() - config.std_floor).log()
