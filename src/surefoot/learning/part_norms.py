"""Norms of the gradient by part of the network, such as actor, critic, memory and encoder."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from surefoot.learning.transforms import Layout
from surefoot.telemetry import names

_LEAST = 1e-12
"""Avoids division by zero."""


class PartNorms:
    """The slices of each part in the flat gradient; a policy says which part a parameter belongs to.

    A part whose parameters are all frozen has a norm of 0.
    """

    def __init__(self, module: nn.Module, layout: Layout) -> None:
        part_of = getattr(module, "part_of", lambda parameter: parameter.partition(".")[0])
        self._slices: dict[str, list[slice]] = {}
        for parameter, _ in module.named_parameters():
            places, place = self._slices.setdefault(part_of(parameter), []), layout.get(parameter)
            if place is None:
                continue
            if places and places[-1].stop == place.start:
                places[-1] = slice(places[-1].start, place.stop)
            else:
                places.append(place)

    @property
    def metrics(self) -> list[str]:
        """Their names as metrics."""
        return [f"{names.TRAIN_PREFIX}{part}_grad_norm" for part in self._slices]

    def measure(self, gradient: Tensor) -> dict[str, Tensor]:
        """The norm of every part, as metrics."""
        none = gradient.new_zeros(())
        norms = [
            torch.linalg.vector_norm(torch.stack([none, *(gradient[place].norm() for place in places)]))
            for places in self._slices.values()
        ]
        return dict(zip(self.metrics, norms, strict=True))

    def native(self) -> dict[str, Any]:
        """For the core: begin, end and number of the part of every slice, in the order of the flat gradient."""
        parts = enumerate(self._slices.values())
        slices = sorted((place.start, place.stop, index) for index, places in parts for place in places)
        return {"parts": slices, "num_parts": len(self._slices)}


def critics_ratio(norms: Mapping[str, float]) -> dict[str, float]:
    """The ratio of the norms of twin critics, as a metric; empty without them."""
    first, second = (norms.get(f"{names.TRAIN_PREFIX}critic{index}_grad_norm") for index in (1, 2))
    return {} if first is None or second is None else {names.CRITICS_GRAD_RATIO: first / max(second, _LEAST)}
