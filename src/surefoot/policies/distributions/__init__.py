"""Action distributions: a head turns features into a batch of distributions; one file per kind.

A `Distribution` samples from given noise, so that it does not matter who draws the noise (a counter, a native thread).
A `DistributionHead` owns the parameters and converts raw actions to env actions.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Self

import torch
from torch import Tensor, nn

from surefoot.data.specs import ArraySpec, HybridSpec
from surefoot.errors import PolicyError
from surefoot.policies.native_parts import Plain, PlanBuilder, unknown
from surefoot.settings.config import PolicyConfig
from surefoot.settings.parts import chosen
from surefoot.settings.registry import AUTO, Registry


class Distribution(ABC):
    """A batch of distributions over raw actions."""

    @abstractmethod
    def sample(self, noise: Tensor) -> Tensor:
        """Raw actions from the head's noise `[B, noise_size]`."""

    @abstractmethod
    def mode(self) -> Tensor:
        """The action taken when acting deterministically."""

    @abstractmethod
    def log_prob(self, action: Tensor) -> Tensor:
        """Log-density or log-probability of raw actions, summed over the action's elements: `[B]`."""

    @abstractmethod
    def entropy(self) -> Tensor:
        """Entropy `[B]`."""

    def kl_divergence(self, other: Self) -> Tensor:
        """KL(self || other) `[B]`; optional, for terms and attacks that compare distributions."""
        raise PolicyError(f"the distribution {type(self).__name__} has no KL divergence; define kl_divergence(other)")

    def mean_std(self) -> Tensor | None:
        """Mean standard deviation, for kinds that have one."""
        return None


class DistributionHead(nn.Module):
    """Features `[B, latent_size]` to a Distribution; `config.distribution` has its settings."""

    noise_size: int
    """Number of uniforms per sample of one row."""
    action_shape: tuple[int, ...]
    """Shape of one raw action: flat, or empty for a single choice."""
    action_dtype: torch.dtype

    def __init__(self, latent_size: int, spec: ArraySpec, config: PolicyConfig) -> None:
        super().__init__()
        self.env_shape = spec.shape

    def forward(self, latent: Tensor, action_mask: Tensor | None = None) -> Distribution:
        """The distributions; actions that `action_mask` forbids have probability 0."""
        raise NotImplementedError

    def noise(self, uniforms: Tensor) -> Tensor:
        """Convert uniforms `[..., noise_size]` in [0, 1) to the noise of `sample`, for a whole rollout at once."""
        return uniforms

    def mean_std(self, some: Callable[[], Distribution]) -> Tensor | None:
        """Mean standard deviation, for metrics; `some` computes distributions, in case it depends on the state."""
        return some().mean_std()

    def limit_std(self, most: float) -> None:
        """Lower the standard deviation where it is above this value."""
        raise PolicyError(
            f"the distribution {type(self).__name__} has no standard deviation that can be limited; use gaussian or"
            " tanh_gaussian with std learned or fixed"
        )

    def to_env(self, action: Tensor) -> Tensor:
        """Convert raw actions to the range and shape of the env's actions."""
        raise NotImplementedError

    def native(self, plan: PlanBuilder) -> Plain:
        """Kind, settings and tensor names of the head in the native core; see docs/native.md."""
        raise unknown("distribution", self)


distributions: Registry[DistributionHead] = Registry(
    "distribution",
    "surefoot.policies.distributions",
    "policy.distribution",
    "DistributionHead",
    automatic=("gaussian", "categorical", "multi_discrete", "bernoulli"),
)

_AUTOMATIC = {
    "box": "gaussian",
    "discrete": "categorical",
    "multi_discrete": "multi_discrete",
    "multi_binary": "bernoulli",
}


_NAMES = {"box": "Box", "discrete": "Discrete", "multi_discrete": "MultiDiscrete", "multi_binary": "MultiBinary"}


def unfit(kind: str, required: str, spec: ArraySpec) -> PolicyError:
    """The error of a distribution that does not fit the action space, with those that do."""
    fitting = [_AUTOMATIC[spec.kind]]
    if spec.kind == "box":
        fitting += ["tanh_gaussian", "beta"] if spec.is_bounded else []
    this = f"{_NAMES[spec.kind]}{' without finite bounds' if spec.kind == 'box' and not spec.is_bounded else ''}"
    return PolicyError(
        f"policy.distribution: {kind} requires a {required} action space, but this one is {this}; set it to"
        f" {', '.join(fitting)} or auto"
    )


def build_head(latent_size: int, spec: ArraySpec, config: PolicyConfig) -> DistributionHead:
    """The configured head; `auto` selects it by the kind of action space. A Tuple or Dict has one per component."""
    if isinstance(spec, HybridSpec):
        from surefoot.policies.hybrid_head import HybridHead  # which consists of these heads

        return HybridHead(latent_size, spec, config)
    if config.distribution.kind == AUTO:
        settings = chosen(config.distribution, "surefoot.policies.distributions", _AUTOMATIC[spec.kind])
        config = config.model_copy(update={"distribution": settings})
    return distributions[config.distribution.kind](latent_size, spec, config)
