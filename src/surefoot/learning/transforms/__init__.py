"""Gradient transforms, applied between backward and the optimizer; one file per transform."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from surefoot.data.records import Knobs
from surefoot.policies.native_parts import Plain, unknown
from surefoot.settings.parts import PartSettings
from surefoot.settings.registry import Registry

Layout = dict[str, slice]
"""The slice of each parameter in the flat gradient, by name."""


def append(places: list[slice], place: slice) -> None:
    """Append a slice; neighbors become one."""
    if places and places[-1].stop == place.start:
        places[-1] = slice(places[-1].start, place.stop)
    else:
        places.append(place)


def norm_of(gradient: Tensor, places: Sequence[slice]) -> Tensor:
    """The norm of some slices of the gradient together."""
    parts = [gradient.new_zeros(()), *(gradient[place].norm() for place in places)]
    norm: Tensor = torch.linalg.vector_norm(torch.stack(parts))
    return norm


class GradientTransform:
    """Base class of transforms: takes the flat gradient of all parameters and returns a transformed one.

    Micro-batches are already summed. Configured transforms run in order, and norm clipping comes last.
    """

    def __init__(self, settings: PartSettings, name: str, layout: Layout) -> None:
        self.name = name

    def apply(self, gradient: Tensor, knobs: Knobs) -> Tensor:
        """The transformed gradient; it may be changed in place."""
        raise NotImplementedError

    def learn_only(self, layout: Layout) -> None:
        """Called when parameters are frozen or thawed, with those that learn; the gradient of all others is 0."""

    def metrics(self) -> dict[str, Tensor]:
        """Metrics of the last step, logged as `<transform>/<name>`; the names must not change."""
        return {}

    def native(self) -> Plain:
        """Kind and settings of the transform in the native core; see docs/native.md."""
        raise unknown("gradient transform", self)

    def native_memory(self) -> dict[str, Tensor]:
        """For the core, which writes to it: the tensors of the state, and the number of `steps` as int64 `[1]`."""
        return {"steps": torch.zeros(1, dtype=torch.int64)}

    def state(self) -> dict[str, Any]:
        """For checkpoints."""
        return {}

    def load_state(self, state: dict[str, Any]) -> None:
        """From a checkpoint."""


transforms: Registry[GradientTransform] = Registry(
    "gradient transform", "surefoot.learning.transforms", base="GradientTransform"
)
