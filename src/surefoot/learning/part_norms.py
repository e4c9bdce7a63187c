"""Norms of the gradient by part of the network, such as actor, critic, memory and encoder."""

import torch
from torch import Tensor, nn

from surefoot.learning.transforms import Layout
from surefoot.telemetry import names


class PartNorms:
    """The slices of each part in the flat gradient; a policy says which part a parameter belongs to."""

    def __init__(self, module: nn.Module, layout: Layout) -> None:
        part_of = getattr(module, "part_of", lambda parameter: parameter.partition(".")[0])
        self._slices: dict[str, list[slice]] = {}
        for parameter, place in layout.items():
            places = self._slices.setdefault(part_of(parameter), [])
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
        norms = [
            torch.linalg.vector_norm(torch.stack([gradient[place].norm() for place in places]))
            for places in self._slices.values()
        ]
        return dict(zip(self.metrics, norms, strict=True))

    def native(self) -> list[tuple[int, int, int]]:
        """For the core: begin, end and number of the part of every slice, in the order of the flat gradient."""
        parts = enumerate(self._slices.values())
        return sorted((place.start, place.stop, index) for index, places in parts for place in places)
