"""Records what both learners hand to their gradient transforms: the gradient of every minibatch, and the weights."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from surefoot.core.parts import PartSettings
from surefoot.core.records import Knobs
from surefoot.core.state import Stateful
from surefoot.learning.learner import Learner
from surefoot.learning.transforms import GradientTransform
from surefoot.policies.normalizer import RunningNormalizer
from surefoot.policies.policy import Policy

NAME = "verify"
"""The recorder's name among the transforms."""


@dataclass(frozen=True, eq=False)
class Step:
    """The state before a gradient step. Weights and gradient are flat, in the order of the policy's parameters."""

    weights: Tensor
    gradient: Tensor
    """The sum over all micro-batches, before transforms and clipping."""
    statistics: dict[str, Tensor]


class Recorder(GradientTransform):
    """Keeps every gradient and leaves it unchanged."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(PartSettings(kind=NAME), NAME, {})
        self._policy = policy
        self.steps: list[Step] = []

    def apply(self, gradient: Tensor, knobs: Knobs) -> Tensor:
        statistics = {name: value.clone() for name, value in statistics_of(self._policy).items()}
        self.steps.append(Step(flat_weights(self._policy), gradient.clone(), statistics))
        return gradient

    def metrics(self) -> dict[str, Tensor]:
        return {"steps": torch.tensor(float(len(self.steps)))}


@contextmanager
def recording(learner: Learner) -> Iterator[list[Step]]:
    """Inside, the steps of a learner are added to the list."""
    recorder, gradient = Recorder(learner.policy), learner.gradient
    before = gradient.transforms
    gradient.transforms = {NAME: recorder, **before}
    try:
        yield recorder.steps
    finally:
        gradient.transforms = before


def flat_weights(policy: Policy) -> Tensor:
    """A copy of all weights that learn, as one vector."""
    return torch.cat([weight.detach().flatten() for weight in learned_weights(policy).values()])


def flat_states(parts: Mapping[str, Stateful]) -> dict[str, Tensor]:
    """A copy of the states of parts: one vector of all numbers per entry."""
    entries = {f"{name} {entry}": value for name, part in parts.items() for entry, value in part.state().items()}
    return {name: torch.cat([torch.zeros(0), *_numbers(value)]).double() for name, value in entries.items()}


def _numbers(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for one in value:
            yield from _numbers(one)
    elif isinstance(value, Tensor | np.ndarray | float | int | bool):
        yield torch.as_tensor(value).double().flatten()


def by_name(flat: Tensor, policy: Policy) -> dict[str, Tensor]:
    """Parts of a flat vector by the names of the weights."""
    weights = learned_weights(policy)
    parts = flat.split([weight.numel() for weight in weights.values()])
    return {name: part.view_as(weights[name]) for name, part in zip(weights, parts, strict=True)}


def learned_weights(policy: Policy) -> dict[str, Tensor]:
    """The weights that learn, by name."""
    return {name: weight for name, weight in policy.named_parameters() if weight.requires_grad}


def statistics_of(policy: Policy) -> dict[str, Tensor]:
    """The running moments of all normalizers, by name."""
    return {
        f"{name}.{moment}": getattr(module, moment)
        for name, module in policy.named_modules()
        if isinstance(module, RunningNormalizer)
        for moment in ("count", "mean", "var")
    }
