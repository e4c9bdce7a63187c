"""Copies to go back to within a process, one in every iteration: many small tensors are copied and checked at once."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

import torch
from torch import Tensor

from surefoot.storage.state import Stateful, copied

Places = dict[torch.dtype, list[tuple[str, torch.Size]]]
"""Names and shapes of tensors, in the order in which they follow each other in memory."""


class TakesSnapshots(Protocol):
    """A part with a way back that is faster than its state. All others have their state copied."""

    def snapshot(self) -> Any:
        """A copy of all that its state has."""

    def go_back(self, snapshot: Any) -> None:
        """Continue from a snapshot, which does not change."""


class FlatTensors:
    """Tensors by name, of which copies are made as long as they stay where they are."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self._places: Places = {}
        self._parts: dict[torch.dtype, list[Tensor]] = {}
        for name, tensor in tensors.items():
            self._places.setdefault(tensor.dtype, []).append((name, tensor.shape))
            self._parts.setdefault(tensor.dtype, []).append(tensor.reshape(-1))

    def copy(self) -> "FlatCopy":
        """Their numbers now."""
        return FlatCopy(self._places, {dtype: torch.cat(parts) for dtype, parts in self._parts.items()})


class FlatCopy:
    """A copy of tensors by name, flat, one for each dtype."""

    def __init__(self, places: Places, flat: dict[torch.dtype, Tensor]) -> None:
        self._places, self._flat = places, flat

    @property
    def is_finite(self) -> bool:
        """Whether all numbers are."""
        # Of NaN and numbers, NaN is both the least and the largest.
        ends = [float(end) for flat in self._flat.values() if len(flat) for end in flat.aminmax()]
        return all(map(math.isfinite, ends))

    def tensors(self) -> dict[str, Tensor]:
        """Views of the copy, by name."""
        return dict(self._views())

    def _views(self) -> Iterator[tuple[str, Tensor]]:
        for dtype, places in self._places.items():
            parts = self._flat[dtype].split([shape.numel() for _, shape in places])
            yield from ((name, part.view(shape)) for (name, shape), part in zip(places, parts, strict=True))


def snapshots(parts: Mapping[str, Stateful]) -> dict[str, Any]:
    """A snapshot of each part, by name."""
    return {name: _snapshot(part) for name, part in parts.items()}


def _snapshot(part: Stateful) -> Any:
    take = getattr(part, "snapshot", None)  # `isinstance` of a protocol takes longer than most snapshots
    return copied(part.state()) if take is None else take()


def go_back(parts: Mapping[str, Stateful], snapshots: Mapping[str, Any], names: Iterable[str]) -> None:
    """Go back to the snapshots of some parts."""
    for name in names:
        part = parts[name]
        back = getattr(part, "go_back", part.load_state)
        back(snapshots[name])
