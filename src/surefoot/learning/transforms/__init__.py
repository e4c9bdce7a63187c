"""Gradient transforms: what happens to a gradient between backward and the optimizer; one file per transform."""

from typing import Any

from torch import Tensor

from surefoot.core.parts import PartSettings
from surefoot.core.records import Knobs
from surefoot.core.registry import Registry

Layout = dict[str, slice]
"""Where each parameter lies in the flat gradient, by name."""


class GradientTransform:
    """Base of transforms: takes the flat gradient of all parameters, gives back the one to step with.

    Sums over micro-batches are complete. Configured transforms run in their order, the clip of the norm last.
    """

    def __init__(self, settings: PartSettings, name: str, layout: Layout) -> None:
        self.name = name

    def apply(self, gradient: Tensor, knobs: Knobs) -> Tensor:
        """The transformed gradient; it may be changed in place."""
        raise NotImplementedError

    def metrics(self) -> dict[str, Tensor]:
        """Of the last step, logged as `<transform>/<name>`; always the same names."""
        return {}

    def state(self) -> dict[str, Any]:
        """For checkpoints."""
        return {}

    def load_state(self, state: dict[str, Any]) -> None:
        """From a checkpoint."""


transforms: Registry[GradientTransform] = Registry(
    "gradient transform", "surefoot.learning.transforms", base="GradientTransform"
)
