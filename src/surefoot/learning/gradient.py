"""The gradient step: sum micro-batches, apply the transforms, then Adam; non-finite gradients are skipped."""

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

from surefoot.data.records import Knobs
from surefoot.errors import CheckpointError, CheckpointMismatchError, ConfigError
from surefoot.learning.adam import MOMENTS, Adam, MissedSteps
from surefoot.learning.frozen import Frozen
from surefoot.learning.part_norms import PartNorms
from surefoot.learning.transforms import GradientTransform, Layout, transforms
from surefoot.learning.transforms.clip_norm import ClipNorm
from surefoot.settings.config import OptimizerConfig
from surefoot.storage.saved import Saved
from surefoot.storage.state import check_present, copied, load_present, on_device

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
        original: nn.Module | None = None,
    ) -> None:
        """`original` is the module whose parameters are frozen, if this one is a copy of it on another device."""
        self.frozen = Frozen(module if original is None else original, config.frozen)
        parameters = dict(module.named_parameters())
        self._named = {name: parameters[name] for name in self.frozen.named}
        self._flat = torch.cat([p.detach().flatten() for p in self._named.values()])
        self._gradient = torch.zeros_like(self._flat)
        self._is_begun, self._reduce = False, reduce
        self._layout = _layout(self._named)
        for name, parameter in self._named.items():
            parameter.data = self._flat[self._layout[name]].view(parameter.shape)
        self._module, self._is_apart = module, _clips_apart(config, module)
        self._adam = Adam(self._flat, config)
        with self._flat.device:  # what they remember is where the gradient is
            self.transforms: dict[str, GradientTransform] = {
                name: transforms[settings.kind](settings, name, self._layout)
                for name, settings in config.transforms.items()
            }
            self._clip = ClipNorm(ClipNorm.Settings(max_norm=max_norm), "clip", self._layout)
        self._missed = MissedSteps()
        self._learn_only(self.frozen.learning())

    def _follow(self) -> None:
        """Notice what was frozen or thawed since the last step."""
        if self.frozen.flags() != self._flags:
            self._learn_only(self.frozen.learning())

    def _learn_only(self, names: Collection[str]) -> None:
        """Step these parameters and no others, whose gradients are 0, and whose moments stay."""
        self._flags = self.frozen.flags()
        self.learning = {name: place for name, place in self._layout.items() if name in names}
        self._zeros = {
            name: self._flat.new_zeros(1).expand(place.stop - place.start)
            for name, place in self._layout.items()
            if name not in names
        }
        self._missed.follow(self._zeros, self.count)
        missed = {name: steps for name, steps in self._missed.until(self.count).items() if name in names}
        self._clear_frozen()
        self._parameters = [self._named[name].requires_grad_() for name in self.learning]  # also those of a copy
        self.part_norms = PartNorms(self._module, self.learning)
        self._clip.groups = self.part_norms.actor_and_critic() if self._is_apart else ()
        offsets = {name: place.start for name, place in self.learning.items()}
        self._native_places = {"offsets": offsets, "missed": missed, **self.part_norms.native(self._is_apart)}
        self._adam.learn_only(self._missed.stretches(self.learning))
        for transform in self.transforms.values():
            transform.learn_only(self.learning)

    def _clear_frozen(self) -> None:
        for name in self._zeros:
            self._gradient[self._layout[name]] = 0

    def add(self, loss: Tensor, share: float = 1.0) -> None:
        """Add a loss's gradient, weighted by its share of the samples, to the next step."""
        if not self._is_begun:
            self._follow()
        if share == 0:  # it may be NaN
            if not self._is_begun:
                self._gradient.zero_()
            self._is_begun = True
            return
        pieces = torch.autograd.grad(loss, self._parameters, materialize_grads=True)
        flat = [piece.reshape(-1) for piece in pieces]
        if self._zeros:
            given = self._zeros | dict(zip(self.learning, flat, strict=True))
            flat = [given[name] for name in self._layout]
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
        if self.transforms:  # they may add something of their own
            self._clear_frozen()
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
        self._follow()
        mean, square = (self._adam.moments[kind].numpy() for kind in MOMENTS)
        values = {"value": self._flat.numpy(), "gradient": self._gradient.numpy()}
        others = [
            {name: tensor.numpy() for name, tensor in transform.native_memory().items()}
            for transform in self.transforms.values()
        ]
        return {**values, "mean": mean, "square": square, **self._native_places, "transforms": others}

    @property
    def count(self) -> int:
        """Number of steps that were not skipped."""
        return int(self._adam.count)

    @count.setter
    def count(self, steps: int) -> None:
        self._adam.count.fill_(steps)

    def state(self) -> dict[str, Any]:
        """Step count, moments by parameter name and states of the transforms, without settings of the config."""
        states = self._transform_states()
        if not self._adam.count:
            return {"adam": {}, "transforms": states}
        flat = {kind: self._adam.moments[kind].clone() for kind in MOMENTS}
        moments = {
            kind: {name: flat[kind][self._layout[name]].view(one.shape) for name, one in self._named.items()}
            for kind in MOMENTS
        }
        counts = {"step": self._adam.count.clone(), "missed": self._missed.until(self.count)}
        return {"adam": {**counts, **moments}, "transforms": states}

    def _transform_states(self) -> dict[str, Any]:
        return {name: state for name, transform in self.transforms.items() if (state := transform.state())}

    def snapshot(self) -> dict[str, Any]:
        """The same as the state, with flat moments."""
        return {
            "moments": torch.stack(list(self._adam.moments.values())),
            "step": self._adam.count.clone(),
            "missed": self._missed.until(self.count),
            "transforms": copied(self._transform_states()),
        }

    def go_back(self, snapshot: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        for moment, before in zip(self._adam.moments.values(), snapshot["moments"], strict=True):
            moment.copy_(before)
        self._adam.count.copy_(snapshot["step"])
        self._restored(snapshot["transforms"], snapshot["missed"])

    def _restored(self, states: dict[str, Any], missed: Mapping[str, int] | None) -> None:
        self._is_begun = False  # without what an interrupted step added
        load_present(self.transforms, states)
        self._missed = MissedSteps(missed)
        self._flags = []  # what learns is looked up before the next step

    def check_state(self, saved: Saved) -> None:
        """Refuse moments of a different network, and what no Adam computes."""
        check_present(self.transforms, saved["transforms"])
        adam = saved["adam"]
        if not adam.entries():
            return
        adam["step"].like(self._adam.count)
        if adam["step"].value < 0:
            raise adam["step"].wrong("0 or more")
        for name, steps in adam["missed"].entries().items() if "missed" in adam.entries() else ():
            if name not in self._named or steps.integer() > adam["step"].value:
                raise steps.wrong("the number of steps that a parameter missed")
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
        saved = state["adam"]
        self._adam.count.copy_(saved["step"] if saved else torch.zeros(()))
        for kind, moment in self._adam.moments.items():
            moment.copy_(torch.cat([saved[kind][name].flatten() for name in self._named]) if saved else torch.zeros(()))
        self._restored(on_device(state["transforms"], self._flat.device), saved.get("missed"))


def _layout(named: dict[str, nn.Parameter]) -> Layout:
    layout, begin = {}, 0
    for name, parameter in named.items():
        layout[name] = slice(begin, begin + parameter.numel())
        begin += parameter.numel()
    return layout


def _clips_apart(config: OptimizerConfig, module: nn.Module) -> bool:
    if config.clip_grad == "apart" and getattr(module, "shares_parameters", True):
        raise ConfigError(
            [
                "optimizer.clip_grad: apart needs an actor and a critic that share no parameters; set it to together,"
                " or policy.share_trunk and policy.share_memory to false"
            ]
        )
    return config.clip_grad == "apart"
