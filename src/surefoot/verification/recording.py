"""Records what learners hand to their gradient transforms: the gradient of every minibatch, and the weights.

What PyTorch's learner hands to its objective is recorded too; the samples carry their number in the rollout.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from surefoot.data.records import Batch, Knobs, Rollout
from surefoot.learning.adam import MOMENTS
from surefoot.learning.learner import Learner
from surefoot.learning.terms import Losses, Objective
from surefoot.learning.transforms import GradientTransform
from surefoot.policies.normalizer import RunningNormalizer
from surefoot.policies.policy import Policy, PolicyOutput
from surefoot.settings.parts import PartSettings
from surefoot.storage.state import Stateful

NAME = "verify"
"""The recorder's name among the transforms."""
SAMPLE = "verify/sample"
"""The extra that holds the number of a sample."""


@dataclass(frozen=True, eq=False)
class Piece:
    """A micro-batch, the policy's output for it, and the losses."""

    batch: Batch
    output: PolicyOutput
    losses: Losses

    @property
    def samples(self) -> Tensor:
        """Their numbers in the rollout, step by step."""
        return self.batch.extras[SAMPLE]


@dataclass(frozen=True, eq=False)
class Step:
    """The state before a gradient step. Weights and gradient are flat, in the order of the policy's parameters."""

    weights: Tensor
    gradient: Tensor
    """The sum over all micro-batches, before transforms and clipping."""
    statistics: dict[str, Tensor]
    pieces: tuple[Piece, ...]
    """The micro-batches of PyTorch's learner; none of the native one."""


class Recorder(GradientTransform):
    """Keeps every gradient and leaves it unchanged."""

    def __init__(self, learner: Learner) -> None:
        super().__init__(PartSettings(kind=NAME), NAME, {})
        self._policy, self._learning = learner.policy, learner.gradient.learning
        self.steps: list[Step] = []
        self.pieces: list[Piece] = []

    def apply(self, gradient: Tensor, knobs: Knobs) -> Tensor:
        statistics = {name: value.clone() for name, value in statistics_of(self._policy).items()}
        learning = torch.cat([gradient[place] for place in self._learning.values()])
        self.steps.append(Step(flat_weights(self._policy), learning, statistics, tuple(self.pieces)))
        self.pieces.clear()
        return gradient

    def metrics(self) -> dict[str, Tensor]:
        return {"steps": torch.tensor(float(len(self.steps)))}


class RecordedObjective(Objective):
    """Keeps every micro-batch."""

    def __init__(self, objective: Objective, pieces: list[Piece]) -> None:
        super().__init__(list(objective.terms.values()))
        self._pieces = pieces

    def __call__(self, policy: Policy, batch: Batch, knobs: Knobs) -> Losses:
        with torch.no_grad():
            output = policy(*batch.inputs)
        losses = super().__call__(policy, batch, knobs)
        self._pieces.append(Piece(batch, output, replace(losses, total=losses.total.detach())))
        return losses


def numbered(rollout: Rollout) -> Rollout:
    """The same rollout; every sample carries its number step * N + row."""
    numbers = torch.arange(rollout.reward.numel()).view(rollout.reward.shape)
    extras = rollout.extras | {SAMPLE: numbers}
    return replace(rollout, extras=extras, learned_extras=(*rollout.learned_extras, SAMPLE))


def labeled(rollout: Rollout, objective: Objective, policy: Policy) -> Rollout:
    """The same rollout with what terms read and hooks would write: the actions, where it looks like actions."""
    wanted = {name: spec for term in objective.terms.values() for name, spec in term.extras(policy).items()}
    made: dict[str, Tensor] = {}
    for name, spec in wanted.items():
        zeros = torch.as_tensor(spec.zeros(*rollout.reward.shape))
        fits = (zeros.shape, zeros.dtype) == (rollout.action.shape, rollout.action.dtype)
        made[name] = rollout.action.clone() if fits else zeros
    return replace(rollout, extras=rollout.extras | made, learned_extras=(*rollout.learned_extras, *made))


@contextmanager
def recording(learner: Learner, keeps_pieces: bool = False) -> Iterator[list[Step]]:
    """Inside, the steps of a learner are added to the list; with their micro-batches, if samples are numbered."""
    recorder, gradient = Recorder(learner), learner.gradient
    before, objective = gradient.transforms, learner.objective
    gradient.transforms = {NAME: recorder, **before}
    if keeps_pieces:
        learner.objective = RecordedObjective(objective, recorder.pieces)
    try:
        yield recorder.steps
    finally:
        gradient.transforms, learner.objective = before, objective


def flat_weights(policy: Policy) -> Tensor:
    """A copy of all weights that learn, as one vector."""
    return torch.cat([weight.detach().flatten() for weight in learned_weights(policy).values()])


def flat_moments(gradient: Mapping[str, Any]) -> dict[str, Tensor]:
    """Adam's moments in the state of a gradient step, each as one vector; none before the first step."""
    adam = gradient["adam"]
    return {kind: torch.cat([one.flatten() for one in adam[kind].values()]) for kind in MOMENTS if adam}


def flat_states(stateful: Mapping[str, Stateful]) -> dict[str, Tensor]:
    """A copy of states: one vector of all numbers per entry."""
    entries = {f"{name} {entry}": value for name, one in stateful.items() for entry, value in one.state().items()}
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
    pieces = flat.split([weight.numel() for weight in weights.values()])
    return {name: piece.view_as(weights[name]) for name, piece in zip(weights, pieces, strict=True)}


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
