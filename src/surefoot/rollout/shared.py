"""Minibatches of a rollout of several processes, each of which has the observations of its own rows only.

All processes shuffle the samples of all rows alike and split them into the same minibatches. Each learns from its own
samples of a minibatch, weighted by their share, so that the gradients add up to that of the whole minibatch.
"""

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from surefoot.data.records import Batch, Rollout, SharedRollout
from surefoot.policies.policy import Policy
from surefoot.rollout.minibatches import FlatSamples
from surefoot.rollout.sequences import SequenceSamples


class SharedSamples:
    """The own part of the samples of all processes; `batch` has the samples of all, without observations."""

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

    def parts(self, size: int, order: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Own samples or sequences of each minibatch, and the advantages of the whole minibatch."""
        for units in self._whole.parts(size, order):
            own = self._own_unit[units]
            yield own[own >= 0], self._whole.advantages(units)

    def minibatches(self, size: int, order: Tensor | None = None) -> Iterator[Batch]:
        """The own part of each minibatch; a placeholder where there is none, because all processes must step."""
        order = torch.arange(self.num_units) if order is None else order
        for units, advantages in self.parts(size, order):
            chosen = units if len(units) else torch.zeros(1, dtype=torch.long)
            yield replace(self.own.take(chosen), whole=advantages, is_placeholder=not len(units))

    def native(self, size: int, orders: Tensor, normalizes: bool) -> dict[str, Any]:
        """For the core: own units of all minibatches, and (own units, all samples, mean, scale) of each minibatch."""
        chosen: list[Tensor] = []
        epochs: list[list[tuple[int, int, float, float]]] = []
        for order in orders:
            epochs.append([])
            for units, advantages in self.parts(size, order):
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
