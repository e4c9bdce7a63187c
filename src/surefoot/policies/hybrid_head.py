"""Actions of several kinds at once, a Tuple or Dict: one distribution per component, independent given the features."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Self

import torch
from torch import Tensor, nn

from surefoot.data.specs import HybridSpec
from surefoot.policies.distributions import Distribution, DistributionHead, build_head
from surefoot.policies.native_parts import Plain, PlanBuilder, UnknownToCoreError
from surefoot.settings.config import PolicyConfig
from surefoot.settings.parts import PartSettings
from surefoot.settings.registry import AUTO


@dataclass(frozen=True)
class Hybrid(Distribution):
    """Raw actions `[B, A]` are those of the components side by side; choices are whole numbers in float32."""

    components: tuple[Distribution, ...]
    heads: tuple[DistributionHead, ...]

    def sample(self, noise: Tensor) -> Tensor:
        pieces = noise.split([head.noise_size for head in self.heads], -1)
        return _joined(component.sample(piece) for component, piece in zip(self.components, pieces, strict=True))

    def mode(self) -> Tensor:
        return _joined(component.mode() for component in self.components)

    def log_prob(self, action: Tensor) -> Tensor:
        raw = raw_components(self.heads, action)
        return _sum(component.log_prob(piece) for component, piece in zip(self.components, raw, strict=True))

    def entropy(self) -> Tensor:
        return _sum(component.entropy() for component in self.components)

    def kl_divergence(self, other: Self) -> Tensor:
        return _sum(
            component.kl_divergence(theirs) for component, theirs in zip(self.components, other.components, strict=True)
        )


class HybridHead(DistributionHead):
    """`policy.distribution` is that of the Box components, or of all if none is a Box; that of others is automatic."""

    def __init__(self, latent_size: int, spec: HybridSpec, config: PolicyConfig) -> None:
        super().__init__(latent_size, spec, config)
        has_box = any(component.kind == "box" for component in spec.leaves)
        automatic = config.model_copy(update={"distribution": PartSettings(kind=AUTO)})
        self.parts = nn.ModuleDict(
            {
                f"part_{key.replace('.', '/')}": build_head(
                    latent_size, component, config if component.kind == "box" or not has_box else automatic
                )
                for key, component in spec.components
            }
        )
        self._num_choices = [component.num_choices for component in spec.leaves]
        self.noise_size = sum(head.noise_size for head in self.heads)
        self.action_shape, self.action_dtype = (sum(raw_sizes(self.heads)),), torch.float32

    @property
    def heads(self) -> tuple[DistributionHead, ...]:
        """The heads of the components."""
        return tuple(self.parts.values())  # type: ignore[arg-type]

    def forward(self, latent: Tensor, action_mask: Tensor | None = None) -> Hybrid:
        masks = [None] * len(self.heads) if action_mask is None else action_mask.split(self._num_choices, -1)
        components = [
            head(latent, mask if count else None)
            for head, mask, count in zip(self.heads, masks, self._num_choices, strict=True)
        ]
        return Hybrid(tuple(components), self.heads)

    def noise(self, uniforms: Tensor) -> Tensor:
        pieces = uniforms.split([head.noise_size for head in self.heads], -1)
        return torch.cat([head.noise(piece) for head, piece in zip(self.heads, pieces, strict=True)], -1)

    def mean_std(self, some: Callable[[], Distribution]) -> Tensor | None:
        def component_of(place: int) -> Distribution:
            whole = some()
            assert isinstance(whole, Hybrid)
            return whole.components[place]

        found = [head.mean_std(partial(component_of, place)) for place, head in enumerate(self.heads)]
        known = [std for std in found if std is not None]
        return torch.stack(known).mean() if known else None

    def to_env(self, action: Tensor) -> Tensor:
        raw = raw_components(self.heads, action)
        return _joined(head.to_env(piece) for head, piece in zip(self.heads, raw, strict=True))

    def native(self, plan: PlanBuilder) -> Plain:
        raise UnknownToCoreError("hybrid actions have no native implementation")


def raw_sizes(heads: tuple[DistributionHead, ...]) -> list[int]:
    """Number of elements of each component's raw action."""
    return [torch.Size(head.action_shape).numel() for head in heads]


def raw_components(heads: tuple[DistributionHead, ...], action: Tensor) -> list[Tensor]:
    """The raw action of each component, in its own shape and dtype."""
    pieces = action.split(raw_sizes(heads), -1)
    return [
        piece.reshape(*piece.shape[:-1], *head.action_shape).to(head.action_dtype)
        for head, piece in zip(heads, pieces, strict=True)
    ]


def _joined(pieces: Iterator[Tensor]) -> Tensor:
    """Actions `[B, ...]` side by side: `[B, A]`."""
    return torch.cat([piece.reshape(len(piece), -1).float() for piece in pieces], -1)


def _sum(terms: Iterator[Tensor]) -> Tensor:
    return torch.stack(list(terms)).sum(0)
