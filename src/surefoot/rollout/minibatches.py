"""From a rollout to shuffled minibatches of valid samples."""

from collections.abc import Callable, Iterator
from dataclasses import fields
from operator import itemgetter
from typing import Any

from torch import Tensor

from surefoot.core.records import Batch, Rollout, Targets
from surefoot.core.tree import tree_map


def flatten(rollout: Rollout, targets: Targets) -> Batch:
    """`[T, N]` to `[B]`, without the rows that are not valid: nothing after this needs a mask (S5)."""
    valid = rollout.valid.flatten()
    keep = slice(None) if bool(valid.all()) else valid

    def flat(leaf: Tensor) -> Tensor:
        return leaf.flatten(0, 1)[keep]

    return Batch(
        obs=tree_map(flat, rollout.obs),
        action=flat(rollout.action),
        log_prob=flat(rollout.log_prob),
        value=flat(rollout.value),
        advantage=flat(targets.advantage),
        returns=flat(targets.returns),
        episode_start=flat(rollout.episode_start),
        action_mask=None if rollout.action_mask is None else flat(rollout.action_mask),
        state=(),
    )


def minibatches(batch: Batch, size: int, order: Tensor | None = None) -> Iterator[Batch]:
    """Every sample once, `size` at a time, the last perhaps fewer; shuffled once, so that each is a plain slice."""
    if order is None and len(batch) <= size:
        yield batch
        return
    shuffled = batch if order is None else map_batch(itemgetter(order), batch)
    for begin in range(0, len(batch), size):
        yield map_batch(itemgetter(slice(begin, begin + size)), shuffled)


def map_batch(function: Callable[[Tensor], Tensor], batch: Batch) -> Batch:
    """Apply a function to every tensor of a batch."""

    def mapped(value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, tuple):
            return tuple(function(part) for part in value)
        return tree_map(function, value)

    return Batch(**{item.name: mapped(getattr(batch, item.name)) for item in fields(Batch)})
