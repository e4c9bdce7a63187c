"""Source of minibatches: single samples, or complete sequences for recurrent policies."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Protocol, Self

from torch import Tensor

from surefoot.data.records import Batch, Rollout, Targets
from surefoot.errors import EnvError
from surefoot.policies.policy import Policy
from surefoot.rollout.minibatches import FlatSamples, flatten, minibatches, others_as_valid, pick
from surefoot.rollout.sequences import SequenceSamples, sequence_pieces, some_sequences
from surefoot.rollout.shared import SharedRollout, SharedSamples, of_all_processes, with_a_sample
from surefoot.settings.config import PPOConfig


class Samples(Protocol):
    """The valid steps of a rollout."""

    batch: Batch
    """All samples, in arbitrary order."""
    num_units: int
    """Number of shuffled units: samples or sequences."""

    @property
    def padding(self) -> float:
        """Fraction of padding if the units were padded to equal length."""

    def moved(self, move: Callable[[Tensor], Tensor]) -> Self:
        """The same samples in the memory that `move` copies a tensor to, such as that of a GPU."""

    def begin_epoch(self, policy: Policy) -> None:
        """Before the first minibatch of an epoch."""

    def minibatches(self, size: int, order: Tensor | None = None) -> Iterator[Batch]:
        """Minibatches in which every sample occurs once."""


def samples_of(rollout: Rollout, targets: Targets, ppo: PPOConfig, with_others: bool = False) -> Samples:
    """Sequences if the rollout has recurrent states, else single samples; `targets` are those of all processes.

    With `with_others`, steps of other policies are samples, too, unless several processes share the rollout.
    """
    if not of_all_processes(rollout).valid.any():
        raise EnvError("the rollout has no valid steps: no agent was active; raise rollout.num_steps")
    if not isinstance(rollout, SharedRollout):
        is_whole = with_others or rollout.others is None
        return _samples_of(others_as_valid(rollout) if is_whole else replace(rollout, others=None), targets, ppo)
    whole, own = _samples_of(replace(rollout.whole, others=None), targets, ppo), rollout.own
    share = replace(targets, advantage=targets.advantage[:, own], returns=targets.returns[:, own])
    mine = _samples_of(replace(with_a_sample(rollout), others=None), share, ppo)
    return SharedSamples(mine, whole, rollout)


def _samples_of(rollout: Rollout, targets: Targets, ppo: PPOConfig) -> FlatSamples | SequenceSamples:
    if rollout.chunks is None:
        return FlatSamples(flatten(rollout, targets))
    return SequenceSamples(rollout, targets, ppo.sequence_state == "recomputed")


def acted(batch: Batch) -> Batch:
    """The samples in which the learning policy acted."""
    return batch if batch.weight is None else pick(batch, batch.weight.nonzero().squeeze(1))


def pieces(minibatch: Batch, size: int | None) -> Iterator[Batch]:
    """Split a minibatch into micro-batches; sequences are never split."""
    size = size or len(minibatch)
    return minibatches(minibatch, size) if minibatch.batch_sizes is None else sequence_pieces(minibatch, size)


def num_units(minibatch: Batch) -> int:
    """Number of samples, or of sequences."""
    return len(minibatch) if minibatch.batch_sizes is None else int(minibatch.batch_sizes[0])


def some_units(minibatch: Batch, chosen: Tensor) -> Batch:
    """The chosen samples or sequences of a minibatch."""
    if minibatch.batch_sizes is None:
        return pick(minibatch, chosen)
    return some_sequences(minibatch, chosen)
