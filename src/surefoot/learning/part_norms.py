"""Norms of the gradient by part of the network, such as actor, critic, memory and encoder."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from surefoot.learning.frozen import parts_of
from surefoot.learning.transforms import Layout, append, norm_of
from surefoot.telemetry import names

_LEAST = 1e-12
"""Avoids division by zero."""


class PartNorms:
    """The slices of each part in the flat gradient; a policy says which part a parameter belongs to.

    A part whose parameters are all frozen has a norm of 0, which is not reported: `norms_of_frozen`.
    """

    def __init__(self, module: nn.Module, layout: Layout) -> None:
        part_of = parts_of(module)
        self._slices: dict[str, list[slice]] = {}
        for parameter, _ in module.named_parameters():
            places, place = self._slices.setdefault(part_of(parameter), []), layout.get(parameter)
            if place is not None:
                append(places, place)

    @property
    def metrics(self) -> list[str]:
        """Their names as metrics."""
        return [_metric(part) for part in self._slices]

    def measure(self, gradient: Tensor) -> dict[str, Tensor]:
        """The norm of every part, as metrics."""
        norms = [norm_of(gradient, places) for places in self._slices.values()]
        return dict(zip(self.metrics, norms, strict=True))

    def actor_and_critic(self) -> list[list[slice]]:
        """The slices of the actor's parts, and those of the critic's."""
        sides: tuple[list[slice], list[slice]] = ([], [])
        for part, places in self._slices.items():
            sides[_is_critic(part)].extend(places)
        return list(sides)

    def native(self, is_apart: bool) -> dict[str, Any]:
        """For the core: begin, end and number of the part of every slice, in the order of the flat gradient.

        `clips` has the number of the norm that the norm of each part counts to when it is clipped.
        """
        parts = enumerate(self._slices.values())
        slices = sorted((place.start, place.stop, index) for index, places in parts for place in places)
        return {"parts": slices, "clips": [int(is_apart and _is_critic(part)) for part in self._slices]}


def norms_of_frozen(module: nn.Module) -> set[str]:
    """The metrics of parts whose parameters are all frozen, by whomever: nothing is said about their gradients."""
    part_of, named = parts_of(module), dict(module.named_parameters())
    learning = {part_of(name) for name, parameter in named.items() if parameter.requires_grad}
    return {_metric(part) for part in map(part_of, named) if part not in learning}


def _metric(part: str) -> str:
    return f"{names.TRAIN_PREFIX}{part}_grad_norm"


def _is_critic(part: str) -> bool:
    return part.startswith("critic")


def critics_ratio(norms: Mapping[str, float]) -> dict[str, float]:
    """The ratio of the norms of twin critics, as a metric; empty without them."""
    first, second = (norms.get(f"{names.TRAIN_PREFIX}critic{index}_grad_norm") for index in (1, 2))
    return {} if first is None or second is None else {names.CRITICS_GRAD_RATIO: first / max(second, _LEAST)}
