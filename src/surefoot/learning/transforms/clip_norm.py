"""Clips the global norm of the gradient (Pascanu et al. 2013)."""

import math

from pydantic import Field
from torch import Tensor

from surefoot.core.config import Positive
from surefoot.core.parts import PartSettings
from surefoot.core.records import Knobs
from surefoot.learning.transforms import GradientTransform, Layout, transforms

_EPSILON = 1e-6


@transforms.register("clip_norm")
class ClipNorm(GradientTransform):
    """Scales the gradient down to `max_norm` where it is longer, and measures its norm before that."""

    class Settings(PartSettings):
        """The limit."""

        max_norm: Positive | None = Field(None, description="maximum global norm; none: only measured")

    norm: Tensor
    """Of the last gradient, before it was clipped."""

    def __init__(self, settings: Settings, name: str, layout: Layout) -> None:
        super().__init__(settings, name, layout)
        self._max_norm = math.inf if settings.max_norm is None else settings.max_norm

    def apply(self, gradient: Tensor, knobs: Knobs) -> Tensor:
        self.norm = gradient.norm()
        return gradient.mul_((self._max_norm / (self.norm + _EPSILON)).clamp(max=1))

    def metrics(self) -> dict[str, Tensor]:
        return {"norm": self.norm}
