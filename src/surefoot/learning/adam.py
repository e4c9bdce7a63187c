"""Adam and AdamW on one flat tensor, by PyTorch's public function."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim import adam as adam_module

from surefoot.learning.transforms import Layout
from surefoot.native.kernels import faster_by
from surefoot.settings.config import OptimizerConfig

MOMENTS = ("exp_avg", "exp_avg_sq")
adam: Any = adam_module.adam
_SKIP_ON_DEVICE = ("cpu", "cuda")
"""Devices whose fused kernel is known to take `found_inf`."""


Stretch = tuple[slice, int]
"""Neighboring parameters that learn, and the number of steps that they have missed while they were frozen."""


def _fused(tensors: list[list[Tensor]], lr: float, skipped: Tensor, options: dict[str, Any]) -> None:
    """`found_inf` skips without a device sync."""
    adam(*tensors, lr=lr, fused=True, found_inf=skipped, **options)


def _is_fused(tensors: list[list[Tensor]], *others: object) -> bool:
    return tensors[0][0].device.type in _SKIP_ON_DEVICE


@faster_by(_fused, _is_fused)
def _step(tensors: list[list[Tensor]], lr: float, skipped: Tensor, options: dict[str, Any]) -> None:
    if not skipped:
        adam(*tensors, lr=lr, foreach=False, **options)


class Adam:
    """Moments and step count; hyperparameters come from the config, not from checkpoints (S14, docs/semantics.md)."""

    def __init__(self, parameters: Tensor, config: OptimizerConfig) -> None:
        self._parameters = parameters
        self.moments = {kind: torch.zeros_like(parameters) for kind in MOMENTS}
        self.count = parameters.new_zeros(())
        self._stretches: Sequence[Stretch] = ()  # empty: all parameters learn and have missed no step
        self._options: dict[str, Any] = dict(zip(("beta1", "beta2"), config.betas, strict=True))
        self._options |= {"eps": config.adam_eps, "weight_decay": config.weight_decay}
        self._options |= {"decoupled_weight_decay": config.algorithm == "adamw", "amsgrad": False, "maximize": False}

    def learn_only(self, stretches: Sequence[Stretch]) -> None:
        """From now on step only these parameters, each with the count of its own steps."""
        self._stretches = () if stretches == [(slice(0, len(self._parameters)), 0)] else stretches

    def step(self, gradient: Tensor, lr: float, skipped: Tensor) -> None:
        """One step; if `skipped` is 1, weights, moments and count are unchanged."""
        flat = (self._parameters, gradient, *(self.moments[kind] for kind in MOMENTS))
        tensors = [*([one] for one in flat), [], [self.count]]
        if self._stretches:
            learning = ([one[place] for place, _ in self._stretches] for one in flat)
            tensors = [*learning, [], [self.count - missed for _, missed in self._stretches]]
        _step(tensors, lr, skipped, self._options)
        if self._stretches:
            self.count += 1 - skipped


class MissedSteps:
    """The steps that parameters missed while they were frozen: Adam corrects its bias by the steps of each parameter.

    Counts by name; `count` is always the optimizer's number of steps.
    """

    def __init__(self, missed: Mapping[str, int] | None = None) -> None:
        self._missed = dict(missed or {})  # without those since a parameter was frozen
        self._since: dict[str, int] = {}

    def follow(self, frozen: Collection[str], count: int) -> None:
        """Note which parameters are frozen from now on."""
        for name in [name for name in self._since if name not in frozen]:
            self._missed[name] = self._missed.get(name, 0) + count - self._since.pop(name)
        for name in frozen:
            self._since.setdefault(name, count)

    def until(self, count: int) -> dict[str, int]:
        """How many steps each parameter has missed; those that have missed none are left out."""
        missed = {name: self._missed.get(name, 0) for name in {**self._missed, **self._since}}
        missed |= {name: missed[name] + count - since for name, since in self._since.items()}
        return {name: steps for name, steps in sorted(missed.items()) if steps}

    def stretches(self, learning: Layout) -> list[Stretch]:
        """Parameters that learn; neighbors that have missed as many steps are joined."""
        stretches: list[Stretch] = []
        for name, place in learning.items():
            begin, missed = place.start, self._missed.get(name, 0)
            if stretches and (stretches[-1][0].stop, stretches[-1][1]) == (begin, missed):
                begin = stretches.pop()[0].start
            stretches.append((slice(begin, place.stop), missed))
        return stretches
