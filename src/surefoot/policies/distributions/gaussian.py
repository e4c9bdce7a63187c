"""Diagonal Gaussian with a fixed, learned or state-dependent standard deviation."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Self, cast

import torch
from pydantic import Field, field_validator
from torch import Tensor, nn

from surefoot.data.specs import ArraySpec
from surefoot.errors import ConfigError
from surefoot.policies.box_muller import box_muller
from surefoot.policies.distributions import Distribution, DistributionHead, distributions, unfit
from surefoot.policies.native_parts import Plain, PlanBuilder
from surefoot.policies.networks import orthogonal_
from surefoot.settings.config import PolicyConfig, Positive
from surefoot.settings.parts import PartSettings

_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
_SMALLEST_EXCESS = 1e-6
"""How far above its floor a standard deviation stays when it is limited to less."""


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

    def kl_divergence(self, other: Self) -> Tensor:
        # In logs, because the square of a ratio near 1, minus 1, would lose its digits.
        double_log_ratio = 2 * (self.std.log() - other.std.log())
        squares = ((self.mean - other.mean) / other.std).square()
        return 0.5 * (squares + double_log_ratio.expm1() - double_log_ratio).sum(-1)

    def mean_std(self) -> Tensor:
        return self.std.mean()


@distributions.register("gaussian")
class GaussianHead(DistributionHead):
    """Mean from features; std = floor + exp(parameter), so that the gradient does not vanish at the floor."""

    class Settings(PartSettings):
        """The standard deviation, and how actions are mapped to the bounds."""

        std: Literal["learned", "fixed", "state"] = Field(
            "learned", description="standard deviation: a learned parameter, fixed, or a function of the state"
        )
        log_std: float = Field(0.0, description="initial log of the standard deviation")
        log_std_groups: dict[str, float] = Field(
            {}, description="initial log of the standard deviation of slices of the action, e.g. {'3:9': -0.7}"
        )
        std_floor: Positive = Field(1e-3, description="lower limit of the standard deviation")
        action_bounds: Literal["clip", "rescale"] = Field(
            "clip", description="bounded actions: clip to the bounds, or rescale from [-1, 1] and then clip"
        )

        @field_validator("log_std_groups")
        @classmethod
        def _slices(cls, groups: dict[str, float]) -> dict[str, float]:
            for key in groups:
                start, colon, stop = key.partition(":")
                if not colon or not start.isdigit() or not stop.isdigit() or int(start) >= int(stop):
                    raise ValueError(f"'{key}' is not a slice; use 'start:stop' such as '0:3'")
            return groups

    low: Tensor
    high: Tensor

    def __init__(self, latent_size: int, spec: ArraySpec, config: PolicyConfig) -> None:
        super().__init__(latent_size, spec, config)
        if spec.kind != "box":
            raise unfit("gaussian", "Box", spec)
        settings = cast(GaussianHead.Settings, config.distribution)
        self.action_shape, self.action_dtype = (spec.size,), torch.float32
        self.noise_size = spec.size + spec.size % 2
        self.mean = nn.Linear(latent_size, spec.size)
        self.std_floor = settings.std_floor
        self.rescale = settings.action_bounds == "rescale" and spec.is_bounded
        register_bounds(self, spec)
        parameter = initial_log_excess(spec.size, settings)
        self.std_layer = nn.Linear(latent_size, spec.size) if settings.std == "state" else None
        self.log_std = nn.Parameter(parameter, requires_grad=settings.std == "learned")
        if config.orthogonal_init:
            orthogonal_(self.mean, 0.01)
        if self.std_layer is not None:
            orthogonal_(self.std_layer, 0.01)

    def forward(self, latent: Tensor, action_mask: Tensor | None = None) -> Distribution:
        raw = self.log_std if self.std_layer is None else self.log_std + self.std_layer(latent)
        return Gaussian(self.mean(latent), self.std_floor + raw.exp())

    def noise(self, uniforms: Tensor) -> Tensor:
        return box_muller(uniforms)

    def mean_std(self, some: Callable[[], Distribution]) -> Tensor | None:
        return super().mean_std(some) if self.std_layer is not None else (self.std_floor + self.log_std.exp()).mean()

    def limit_std(self, most: float) -> None:
        if self.std_layer is not None:
            super().limit_std(most)
        with torch.no_grad():
            self.log_std.clamp_(max=math.log(max(most - self.std_floor, _SMALLEST_EXCESS)))

    def to_env(self, action: Tensor) -> Tensor:
        if self.rescale:
            action = self.low + (action + 1) * (0.5 * (self.high - self.low))
        return action.clamp(self.low, self.high).view(-1, *self.env_shape)

    def native(self, plan: PlanBuilder) -> Plain:
        return self.native_gaussian(plan, "gaussian")

    def native_gaussian(self, plan: PlanBuilder, kind: str) -> Plain:
        """Settings and tensor names of a Gaussian and its subclasses for the native core."""
        return {
            "kind": kind,
            "layer": plan.linear(self.mean),
            "std_layer": "" if self.std_layer is None else plan.linear(self.std_layer),
            "log_std": f"{plan.name(self)}.log_std",
            "std_floor": self.std_floor,
            "rescale": self.rescale,
            "low": self.low.tolist(),
            "high": self.high.tolist(),
        }


def register_bounds(head: DistributionHead, spec: ArraySpec) -> None:
    """Register the action bounds as flat buffers `low` and `high`."""
    for name, bound in zip(("low", "high"), spec.bounds(), strict=True):
        flat = torch.as_tensor(bound.ravel(), dtype=torch.float32)
        head.register_buffer(name, flat, persistent=False)


def initial_log_excess(size: int, settings: GaussianHead.Settings) -> Tensor:
    """The parameter whose floor + exp is the configured initial std of each action element."""
    log_std = torch.full((size,), settings.log_std)
    for key, value in settings.log_std_groups.items():
        start, stop = (int(bound) for bound in key.split(":"))
        if stop > size:
            raise ConfigError(
                [f"policy.distribution.log_std_groups: '{key}' exceeds the {size} elements of the action"]
            )
        log_std[start:stop] = value
    if bool((log_std.exp() <= settings.std_floor).any()):
        raise ConfigError(
            [
                "policy.distribution.log_std: the initial standard deviation is below std_floor"
                f" {settings.std_floor}; raise log_std or lower std_floor"
            ]
        )
    return (log_std.exp() - settings.std_floor).log()
