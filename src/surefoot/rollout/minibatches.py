"""Splits a rollout into shuffled minibatches of valid samples, for policies without memory.

Samples may be on any device. Indices are computed on the CPU, where finding out their number costs no wait.
"""

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from operator import itemgetter
from typing import Any

from torch import Tensor

from surefoot.data.records import Batch, Rollout, Targets
from surefoot.data.tree import tree_map, without
from surefoot.policies.policy import Policy

_NO_SAMPLES = ("state", "batch_sizes")
"""Fields of a batch that do not have one entry per sample."""


class FlatSamples:
    """Independent samples in any order."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.num_units = len(batch)
        self.padding = 0.0

    def begin_epoch(self, policy: Policy) -> None:
        """Nothing to do without memory."""

    def moved(self, move: Callable[[Tensor], Tensor]) -> "FlatSamples":
        """The same samples in other memory."""
        return FlatSamples(map_batch(move, self.batch))

    def minibatches(self, size: int, order: Tensor | None = None) -> Iterator[Batch]:
        """Minibatches of `size` samples; every sample occurs once."""
        return minibatches(self.batch, size, order)

    def split(self, size: int, order: Tensor) -> Iterator[Tensor]:
        """The samples of each minibatch."""
        return iter(order.split(size))

    def take(self, units: Tensor) -> Batch:
        """Some samples."""
        return pick(self.batch, units)

    def advantages(self, units: Tensor) -> Tensor:
        """The advantages of some samples."""
        return self.batch.advantage[units.to(self.batch.advantage.device)]


def flatten(rollout: Rollout, targets: Targets) -> Batch:
    """`[T, N]` to `[B]` without invalid steps, so that later code needs no mask (S5, docs/semantics.md)."""
    valid = rollout.valid.flatten()
    if valid.all():
        return map_rollout(lambda leaf: leaf.flatten(0, 1), rollout, targets)
    return map_rollout(lambda leaf: leaf.flatten(0, 1)[valid], rollout, targets)


def map_rollout(function: Callable[[Tensor], Tensor], rollout: Rollout, targets: Targets) -> Batch:
    """A batch of all training data, with a function applied to each tensor `[T, N, ...]`."""
    return Batch(
        obs=tree_map(function, without(rollout.obs, rollout.unread_obs)),
        action=function(rollout.action),
        log_prob=function(rollout.log_prob),
        value=function(rollout.value),
        advantage=function(targets.advantage),
        returns=function(targets.returns),
        episode_start=function(rollout.episode_start),
        action_mask=None if rollout.action_mask is None else function(rollout.action_mask),
        state=(),
        weight=None if rollout.others is None else function(_weights(rollout.valid, rollout.others)),
        extras={name: function(rollout.extras[name]) for name in rollout.learned_extras},
    )


def others_as_valid(rollout: Rollout) -> Rollout:
    """The rollout in which the steps of other policies are valid, too."""
    return rollout if rollout.others is None else replace(rollout, valid=rollout.valid | rollout.others)


def _weights(valid: Tensor, others: Tensor) -> Tensor:
    """0 where another policy acted; elsewhere so that the mean over all samples is 1."""
    own = valid & ~others
    return own * (valid.sum() / own.sum())


def minibatches(batch: Batch, size: int, order: Tensor | None = None) -> Iterator[Batch]:
    """Minibatches of `size` samples, the last possibly smaller; shuffled once, so that each one is a slice."""
    if order is None and len(batch) <= size:
        yield batch
        return
    shuffled = batch if order is None else pick(batch, order)
    for begin in range(0, len(batch), size):
        yield map_batch(itemgetter(slice(begin, begin + size)), shuffled)


def pick(batch: Batch, index: Tensor) -> Batch:
    """The samples with these indices."""
    return map_batch(itemgetter(index.to(batch.action.device)), batch)


def map_batch(function: Callable[[Tensor], Tensor], batch: Batch) -> Batch:
    """Apply a function to every tensor of samples in a batch."""

    def mapped(value: Any) -> Any:
        return None if value is None else tree_map(function, value)

    names = [item.name for item in fields(Batch) if item.name not in _NO_SAMPLES]
    return Batch(**{name: mapped(getattr(batch, name)) for name in names}, state=())
