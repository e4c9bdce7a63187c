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
    """Scales the gradient down to `max_norm` if its norm is larger, and measures the norm before clipping."""

    class Settings(PartSettings):
        """The maximum norm."""

        max_norm: Positive | None = Field(None, description="maximum global norm; none only measures it")

    norm: Tensor
    """Norm of the last gradient, before clipping."""

    def __init__(self, settings: Settings, name: str, layout: Layout) -> None:
        super().__init__(settings, name, layout)
        self._max_norm = math.inf if settings.max_norm is None else settings.max_norm

    def apply(self, gradient: Tensor, knobs: Knobs) -> Tensor:
        self.norm = gradient.norm()
        return gradient.mul_((self._max_norm / (self.norm + _EPSILON)).clamp(max=1))

    def metrics(self) -> dict[str, Tensor]:
        return {"norm": self.norm}
