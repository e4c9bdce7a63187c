"""Samples at a kink: where a slope jumps, rounding decides which of two gradients is computed, and both are right.

A relu whose sum is 1e-8 in one implementation is -1e-8 in another that adds in a different order. The losses do not
notice, but this sample's gradient flows through the unit in one of them only.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

_BOUNDS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("relu", "leaky_relu", "abs"), ()),
    **dict.fromkeys(("clamp", "clip"), ("min", "max")),
    "clamp_min": ("min",),
    "clamp_max": ("max",),
}
"""The arguments at which the slope of an operation jumps; none for those with a kink at 0."""
_CHOICES = ("minimum", "maximum")
"""Operations whose slope jumps where their arguments become equal."""
EDGE = 8
"""A sample is at a kink if it lies within this many times the distance that rounding moves it."""


class KinkWatch(TorchFunctionMode):
    """Records how far the inputs of all operations with a kink are from it; only inputs with a gradient matter.

    PPO's losses compare numbers with the same numbers clamped. Where nothing is clamped the two are equal, and the
    slope does not jump.
    """

    def __init__(self) -> None:
        super().__init__()
        self.distances: list[Tensor] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, name = kwargs or {}, getattr(func, "__name__", "")
        names = _BOUNDS.get(name)
        if names is not None and args[0].requires_grad:
            given = dict(zip(names, args[1:], strict=False)) | {name: kwargs[name] for name in names if name in kwargs}
            bounds = [bound for bound in given.values() if bound is not None] if names else [0.0]
            self.distances += [args[0].detach() - bound for bound in bounds]
        elif name in _CHOICES and args[0].requires_grad:
            distance = (args[0] - args[1]).detach()
            self.distances.append(distance.masked_fill(distance == 0, torch.inf))
        return func(*args, **kwargs)


def kink_distances(compute: Callable[[], Any]) -> list[Tensor]:
    """The distances from all kinks in a computation, in the order in which they were met."""
    watch = KinkWatch()
    with watch:
        compute()
    return watch.distances


def at_a_kink(num_samples: int, here: list[Tensor], nudged: Sequence[list[Tensor]]) -> Tensor:
    """Which samples `[B]` are at a kink, from their distances and those of nudged copies of the computation."""
    found = torch.zeros(num_samples, dtype=torch.bool)
    for distance, *others in zip(here, *nudged, strict=True):
        if len(distance) == num_samples:  # a kink of the weights themselves is the same on both paths
            moved = torch.stack([(other - distance).abs() for other in others]).amax(0).view(num_samples, -1)
            reach = EDGE * moved.amax(1, keepdim=True)
            found |= (distance.view(num_samples, -1).abs() <= reach).any(1)
    return found
