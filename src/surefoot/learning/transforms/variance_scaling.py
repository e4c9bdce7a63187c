"""Variance gradient scaling: trusts each element of the gradient by how little it varies from step to step."""

from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from surefoot.data.records import Knobs
from surefoot.errors import CheckpointError, CheckpointMismatchError
from surefoot.learning.transforms import GradientTransform, Layout, append, transforms
from surefoot.policies.native_parts import Plain
from surefoot.settings.config import Decay, Fraction, Positive
from surefoot.settings.parts import Knob, PartSettings
from surefoot.storage.saved import Saved

_SOUND = 1e36
"""Sum of squares below which squared distances from past gradients are finite in float32; a NaN is not below."""


@transforms.register("variance_scaling")
class VarianceScaling(GradientTransform):
    """Scales each element of the gradient by max(floor, 1 / (1 + strength v)), v its variance over its squared mean.

    Both are running means with the bias corrected, of every element of its own: the mean over a layer would not see
    noise that cancels out in it. They are West's (1979) updates: the new gradient has the share (1 - beta) / (1 -
    beta^steps). A gradient that does not change has variance 0 without any rounding, and so the scale 1.
    """

    class Settings(PartSettings):
        """Memory, strength and floor."""

        beta: Decay = Field(0.99, description="decay of the running moments per step")
        strength: Knob = Field(0.1, description="influence of the relative variance on the scale")
        floor: Fraction = Field(0.1, description="lowest scale")
        epsilon: Positive = Field(1e-8, description="added to the squared mean; much smaller gradients are not scaled")
        warmup: int = Field(100, ge=0, description="number of steps that only measure the moments")

    def __init__(self, settings: Settings, name: str, layout: Layout) -> None:
        super().__init__(settings, name, layout)
        self._settings, self._layout = settings, layout
        size = max(place.stop for place in layout.values())
        self._steps = torch.zeros(1, dtype=torch.int64)
        self._moments = {"mean": torch.zeros(size), "variance": torch.zeros(size)}
        self._places = [slice(0, size)]
        self._scales = [torch.ones(1)]

    def learn_only(self, layout: Layout) -> None:
        self._places = []
        for place in layout.values():
            append(self._places, place)

    def apply(self, gradient: Tensor, knobs: Knobs) -> Tensor:
        settings = self._settings
        self._scales = [gradient.new_ones(1)]
        if not gradient.dot(gradient) < _SOUND:  # the step may be skipped: nothing remembers it
            return gradient
        self._steps += 1
        strength = knobs[f"{self.name}.strength"] if self._steps > settings.warmup else 0.0
        self._scales = [self._scale(gradient, place, strength) for place in self._places]
        return gradient

    def _scale(self, whole: Tensor, place: slice, strength: float) -> Tensor:
        """Scale a part of the gradient in place."""
        settings, gradient = self._settings, whole[place]
        mean, variance = (moment[place] for moment in self._moments.values())
        share = (1 - settings.beta) / (1 - settings.beta ** int(self._steps))
        apart = gradient - mean
        mean.add_(apart, alpha=share)
        variance.addcmul_(apart, apart, value=share).mul_(1 - share)
        power = mean.square() + settings.epsilon
        scale = (power / (power + strength * variance)).clamp(min=settings.floor)
        gradient.mul_(scale)
        return scale

    def metrics(self) -> dict[str, Tensor]:
        scale = torch.cat(self._scales)
        return {"mean_scale": scale.mean(), "share_at_floor": (scale <= self._settings.floor).float().mean()}

    def native(self) -> Plain:
        plain = {name: getattr(self._settings, name) for name in ("beta", "floor", "epsilon")}
        return {"kind": "variance_scaling", "warmup": float(self._settings.warmup), **plain}

    def native_memory(self) -> dict[str, Tensor]:
        return {"steps": self._steps, **self._moments}

    def state(self) -> dict[str, Any]:
        by_name = {kind: self._by_name(moment) for kind, moment in self._moments.items()}
        return {"steps": self._steps.clone(), **by_name}

    def check_state(self, saved: Saved) -> None:
        try:
            saved.like(self.state())
        except CheckpointMismatchError as error:
            raise CheckpointMismatchError(f"the state of '{self.name}' belongs to another network: {error}") from error
        if saved["steps"].value < 0:
            raise saved["steps"].wrong("0 or more")
        for variance in saved["variance"].entries().values():
            if (variance.value < 0).any():
                raise CheckpointError(f"{variance.path} has negative elements; variances cannot be negative")

    def load_state(self, state: dict[str, Any]) -> None:
        self._steps.copy_(state["steps"])
        for kind, moment in self._moments.items():
            for name, place in self._layout.items():
                moment[place] = state[kind][name]

    def _by_name(self, moment: Tensor) -> dict[str, Tensor]:
        return {name: moment[place].clone() for name, place in self._layout.items()}
