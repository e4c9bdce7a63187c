"""What the learner draws minibatches from: single samples, or whole sequences where the policy has memory."""

from collections.abc import Iterator
from typing import Protocol

from torch import Tensor

from surefoot.core.config import PPOConfig
from surefoot.core.errors import EnvError
from surefoot.core.records import Batch, Rollout, Targets
from surefoot.policies.policy import Policy
from surefoot.rollout.minibatches import FlatSamples, flatten, minibatches
from surefoot.rollout.sequences import SequenceSamples, sequence_pieces


class Samples(Protocol):
    """The valid steps of a rollout."""

    batch: Batch
    """All of them, in no order that a policy could be run on."""
    num_units: int
    """What is shuffled: samples, or sequences."""

    @property
    def padding(self) -> float:
        """Share of a table of the units side by side that would be empty."""

    def begin_epoch(self, policy: Policy) -> None:
        """Before the first minibatch of an epoch."""

    def minibatches(self, size: int, order: Tensor | None = None) -> Iterator[Batch]:
        """Everything once."""


def samples_of(rollout: Rollout, targets: Targets, ppo: PPOConfig) -> Samples:
    """Sequences if the rollout kept memory for them."""
    if not rollout.valid.any():
        raise EnvError("not one step of a whole rollout counts: all agents were absent; set rollout.num_steps higher")
    if rollout.chunks is None:
        return FlatSamples(flatten(rollout, targets))
    return SequenceSamples(rollout, targets, ppo.sequence_state == "recomputed")


def pieces(minibatch: Batch, size: int | None) -> Iterator[Batch]:
    """A minibatch in micro-batches; sequences stay whole."""
    size = size or len(minibatch)
    return minibatches(minibatch, size) if minibatch.batch_sizes is None else sequence_pieces(minibatch, size)
