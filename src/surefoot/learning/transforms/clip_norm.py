"""Clips the norm of the gradient (Pascanu et al. 2013)."""

import math
from collections.abc import Sequence

from pydantic import Field
from torch import Tensor

from surefoot.data.records import Knobs
from surefoot.learning.transforms import GradientTransform, Layout, norm_of, transforms
from surefoot.settings.config import Positive
from surefoot.settings.parts import PartSettings

_EPSILON = 1e-6


@transforms.register("clip_norm")
class ClipNorm(GradientTransform):
    """Scales the gradient down to `max_norm` if its norm is larger, and measures the norm before clipping."""

    class Settings(PartSettings):
        """The maximum norm."""

        max_norm: Positive | None = Field(None, description="maximum global norm; none only measures it")

    norm: Tensor
    """Norm of the last gradient, before clipping."""
    groups: Sequence[Sequence[slice]] = ()
    """Slices of the gradient whose norms are clipped apart; empty: one norm of all."""

    def __init__(self, settings: Settings, name: str, layout: Layout) -> None:
        super().__init__(settings, name, layout)
        self._max_norm = math.inf if settings.max_norm is None else settings.max_norm

    def apply(self, gradient: Tensor, knobs: Knobs) -> Tensor:
        self.norm = gradient.norm()
        if not self.groups:
            return gradient.mul_(self._scale(self.norm))
        for places in self.groups:
            scale = self._scale(norm_of(gradient, places))
            for place in places:
                gradient[place] *= scale
        return gradient

    def _scale(self, norm: Tensor) -> Tensor:
        return (self._max_norm / (norm + _EPSILON)).clamp(max=1)

    def metrics(self) -> dict[str, Tensor]:
        return {"norm": self.norm}
