"""Minibatches of a rollout that is shared by several processes, each with only the observations of its own rows.

All processes shuffle the samples of all rows alike and split them into the same minibatches. Each learns from its own
samples of a minibatch, weighted by their share, so that the gradients add up to that of the whole minibatch.
"""

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from surefoot.data.moments import ObsMoments, normalized
from surefoot.data.records import Batch, Rollout
from surefoot.policies.policy import Policy
from surefoot.rollout.minibatches import FlatSamples
from surefoot.rollout.sequences import SequenceSamples


@dataclass(frozen=True, kw_only=True)
class SharedRollout(Rollout):
    """The own rows of a process that shares a rollout with others."""

    whole: Rollout
    """All rows in order; observations and actions are empty."""
    own: slice
    """The rows of this process."""
    merge: Callable[[ObsMoments], ObsMoments]
    """Merges moments of all processes; every one of them must call it."""


def of_all_processes(rollout: Rollout) -> Rollout:
    """The rows of all processes, without observations and actions if there are several."""
    return rollout.whole if isinstance(rollout, SharedRollout) else rollout


def merged_moments(rollout: Rollout, moments: ObsMoments) -> ObsMoments:
    """The moments of something in the rows of all processes, by name."""
    return rollout.merge(moments) if isinstance(rollout, SharedRollout) else moments


@dataclass(frozen=True, kw_only=True)
class SharedBatch(Batch):
    """The own samples of a minibatch."""

    whole: Tensor
    """The advantages of the whole minibatch."""
    is_placeholder: bool
    """Whether this process has no sample of the minibatch; these have no weight."""

    @property
    def size(self) -> int:
        """Number of samples of all processes."""
        return len(self.whole)

    def share_of(self, piece: Batch) -> float:
        """The share of a piece in the minibatch of all processes."""
        return 0.0 if self.is_placeholder else len(piece) / self.size

    @property
    def normalized_advantage(self) -> Tensor:
        """Own advantages; those of all processes have zero mean and unit standard deviation."""
        return normalized(self.advantage, whole=self.whole)


class SharedSamples:
    """The own share of the samples of all processes; `batch` has the samples of all, without observations."""

    def __init__(
        self, own: FlatSamples | SequenceSamples, whole: FlatSamples | SequenceSamples, shared: SharedRollout
    ) -> None:
        self.own, self._whole = own, whole
        self.batch, self.num_units, self.padding = whole.batch, whole.num_units, whole.padding
        row = whole.place[1] if isinstance(whole, SequenceSamples) else shared.whole.valid.nonzero()[:, 1]
        is_own = (row >= shared.own.start) & (row < shared.own.stop)
        self._own_unit = torch.where(is_own, is_own.cumsum(0) - 1, -1)

    def moved(self, move: Callable[[Tensor], Tensor]) -> "SharedSamples":
        """The same samples in other memory."""
        there = copy(self)
        there.own, there._whole = self.own.moved(move), self._whole.moved(move)
        return there

    def begin_epoch(self, policy: Policy) -> None:
        """Before the first minibatch of an epoch."""
        self.own.begin_epoch(policy)

    def split(self, size: int, order: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Own samples or sequences of each minibatch, and the advantages of the whole minibatch."""
        for units in self._whole.split(size, order):
            own = self._own_unit[units]
            yield own[own >= 0], self._whole.advantages(units)

    def minibatches(self, size: int, order: Tensor | None = None) -> Iterator[Batch]:
        """The own share of each minibatch; a placeholder where there is none, because all processes must step."""
        order = torch.arange(self.num_units) if order is None else order
        for units, advantages in self.split(size, order):
            batch = self.own.take(units if len(units) else torch.zeros(1, dtype=torch.long))
            yield SharedBatch(**vars(batch), whole=advantages, is_placeholder=not len(units))

    def native(self, size: int, orders: Tensor, normalizes: bool) -> dict[str, Any]:
        """For the core: own units of all minibatches, and (own units, all samples, mean, scale) of each minibatch."""
        chosen: list[Tensor] = []
        epochs: list[list[tuple[int, int, float, float]]] = []
        for order in orders:
            epochs.append([])
            for units, advantages in self.split(size, order):
                mean, scale = 0.0, 1.0
                if normalizes and len(advantages) > 1:
                    mean, scale = float(advantages.double().mean()), float(advantages.double().std()) + 1e-8
                chosen.append(units)
                epochs[-1].append((len(units), len(advantages), mean, scale))
        return {"units": torch.cat(chosen).numpy(), "epochs": epochs}


def with_a_sample(rollout: Rollout) -> Rollout:
    """The rollout, with one of its steps as a placeholder if none is valid."""
    if rollout.valid.any():
        return rollout
    valid = rollout.valid.clone()
    valid[0, 0] = True
    return replace(rollout, valid=valid)
