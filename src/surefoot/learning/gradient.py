"""The gradient step: sum micro-batches, apply the transforms, then Adam; non-finite gradients are skipped."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

from surefoot.core.config import OptimizerConfig
from surefoot.core.errors import CheckpointError, CheckpointMismatchError
from surefoot.core.records import Knobs
from surefoot.core.saved import Saved
from surefoot.core.state import check_present, load_present, on_device
from surefoot.learning.adam import MOMENTS, Adam
from surefoot.learning.part_norms import PartNorms
from surefoot.learning.transforms import GradientTransform, Layout, transforms
from surefoot.learning.transforms.clip_norm import ClipNorm

EMPTY: Mapping[str, Tensor] = MappingProxyType({})


def unchanged(*tensors: Tensor) -> None:
    """The sum over one process."""


class GradientStep:
    """Owns the optimizer and the gradient transforms; all of it is on the device of the module.

    The module's parameters become views of one flat tensor: with small networks, handling a dozen tensors one by one
    costs more than the arithmetic.
    """

    def __init__(
        self,
        module: nn.Module,
        config: OptimizerConfig,
        max_norm: float | None,
        reduce: Callable[..., None] = unchanged,
    ) -> None:
        self._named = {name: p for name, p in module.named_parameters() if p.requires_grad}
        self._flat = torch.cat([p.detach().flatten() for p in self._named.values()])
        self._gradient = torch.zeros_like(self._flat)
        self._is_begun, self._reduce = False, reduce
        self._layout = _layout(self._named)
        for name, parameter in self._named.items():
            parameter.data = self._flat[self._layout[name]].view(parameter.shape)
        self._parameters = list(self._named.values())
        self.part_norms = PartNorms(module, self._layout)
        self._adam = Adam(self._flat, config)
        with self._flat.device:  # what they remember is where the gradient is
            self.transforms: dict[str, GradientTransform] = {
                name: transforms[settings.kind](settings, name, self._layout)
                for name, settings in config.transforms.items()
            }
            self._clip = ClipNorm(ClipNorm.Settings(max_norm=max_norm), "clip", self._layout)

    def add(self, loss: Tensor, share: float = 1.0) -> None:
        """Add a loss's gradient, weighted by its share of the samples, to the next step."""
        if share == 0:  # it may be NaN
            if not self._is_begun:
                self._gradient.zero_()
            self._is_begun = True
            return
        pieces = torch.autograd.grad(loss, self._parameters, materialize_grads=True)
        flat = [piece.reshape(-1) for piece in pieces]
        if self._is_begun:
            self._gradient.add_(torch.cat(flat), alpha=share)
        else:  # large networks are bound by memory bandwidth here: every pass over the gradient counts
            torch.cat(flat, out=self._gradient)
            if share != 1.0:
                self._gradient.mul_(share)
        self._is_begun = True

    @torch.no_grad()
    def step(self, knobs: Knobs, watched: Mapping[str, Tensor] = EMPTY) -> dict[str, Tensor]:
        """Transform, clip, step and reset the gradient; `skipped` is 1 if it was not finite.

        Returns what was measured with what was watched, which is summed over all processes like the gradient.
        """
        if watched and self.is_reduced:
            watched = dict(zip(watched, torch.stack(list(watched.values())), strict=True))
        watched = {**watched, **self.transform(knobs, *watched.values())}
        norms = self.part_norms.measure(self._gradient)
        gradient = self._clip.apply(self._gradient, knobs)
        skipped = 1 - self._clip.norm.isfinite().float()
        self._adam.step(gradient, knobs.lr, skipped)
        self._is_begun = False
        return {**watched, "grad_norm": self._clip.norm, "skipped": skipped, **norms}

    @torch.no_grad()
    def transform(self, knobs: Knobs, *measured: Tensor) -> dict[str, Tensor]:
        """Sum the gradient and what was measured over all processes, then apply the configured transforms, in place."""
        self._reduce(self._gradient, *measured)
        gradient = self._gradient
        watched: dict[str, Tensor] = {}
        for name, transform in self.transforms.items():
            gradient = transform.apply(gradient, knobs)
            watched |= {f"{name}/{key}": value for key, value in transform.metrics().items()}
        if gradient is not self._gradient:
            self._gradient.copy_(gradient)
        return watched

    @property
    def values(self) -> Tensor:
        """All learned parameters, flat."""
        return self._flat

    @property
    def is_reduced(self) -> bool:
        """Whether gradients are summed over processes."""
        return self._reduce is not unchanged

    def native_memory(self) -> dict[str, Any]:
        """For the core: views of the parameters, their gradient and its moments, and where each parameter begins."""
        mean, square = (self._adam.moments[kind].numpy() for kind in MOMENTS)
        offsets = {name: place.start for name, place in self._layout.items()}
        values = {"value": self._flat.numpy(), "gradient": self._gradient.numpy()}
        others = [
            {name: tensor.numpy() for name, tensor in transform.native_memory().items()}
            for transform in self.transforms.values()
        ]
        places = {"offsets": offsets, **self.part_norms.native()}
        return {**values, "mean": mean, "square": square, **places, "transforms": others}

    @property
    def count(self) -> int:
        """Number of steps that were not skipped."""
        return int(self._adam.count)

    @count.setter
    def count(self, steps: int) -> None:
        self._adam.count.fill_(steps)

    def state(self) -> dict[str, Any]:
        """Step count, moments by parameter name and states of the transforms, without settings of the config."""
        states = {name: state for name, transform in self.transforms.items() if (state := transform.state())}
        if not self._adam.count:
            return {"adam": {}, "transforms": states}
        moments = {
            kind: {
                name: self._adam.moments[kind][self._layout[name]].view(parameter.shape).clone()
                for name, parameter in self._named.items()
            }
            for kind in MOMENTS
        }
        return {"adam": {"step": self._adam.count.clone(), **moments}, "transforms": states}

    def check_state(self, saved: Saved) -> None:
        """Refuse moments of a different network, and what no Adam computes."""
        check_present(self.transforms, saved["transforms"])
        adam = saved["adam"]
        if not adam.entries():
            return
        adam["step"].like(self._adam.count)
        if adam["step"].value < 0:
            raise adam["step"].wrong("0 or more")
        ours = {name: parameter.detach() for name, parameter in self._named.items()}
        for kind in MOMENTS:
            try:
                adam[kind].like(ours)
            except CheckpointMismatchError as error:
                raise CheckpointMismatchError(
                    f"the optimizer state of the checkpoint belongs to another network: {error}"
                ) from error
        for moment in adam["exp_avg_sq"].entries().values():
            if (moment.value < 0).any():
                raise CheckpointError(f"{moment.path} is a mean of squares, but has negative elements")

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore the state from a checkpoint; hyperparameters come from the config."""
        saved, self._is_begun = state["adam"], False  # without what an interrupted step added
        self._adam.count.copy_(saved["step"] if saved else torch.zeros(()))
        for kind, moment in self._adam.moments.items():
            moment.copy_(torch.cat([saved[kind][name].flatten() for name in self._named]) if saved else torch.zeros(()))
        load_present(self.transforms, on_device(state["transforms"], self._flat.device))


def _layout(named: dict[str, nn.Parameter]) -> Layout:
    layout, begin = {}, 0
    for name, parameter in named.items():
        layout[name] = slice(begin, begin + parameter.numel())
        begin += parameter.numel()
    return layout
