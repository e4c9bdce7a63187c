"""Splits a rollout into shuffled minibatches of complete sequences, for recurrent policies.

A sequence consists of consecutive valid steps of one row, within one chunk of the rollout and one episode: so no
sequence contains a reset (S6, docs/semantics.md) and nothing is padded (S5). Minibatches have the layout of torch's
PackedSequence: step by step, the longest sequence first; `batch_sizes` is the number of active sequences per step. Like
indices, they are on the CPU, wherever the samples are.
"""

import math
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter

import torch
from torch import Tensor

from surefoot.data.records import Batch, Chunks, Rollout, State, Targets
from surefoot.policies.policy import Policy
from surefoot.rollout.minibatches import map_batch, map_rollout, pick


@dataclass(frozen=True)
class Runs:
    """Runs of consecutive steps, one entry each; steps are indexed by row * T + step."""

    first: Tensor
    length: Tensor

    def __getitem__(self, chosen: Tensor) -> "Runs":
        return Runs(self.first[chosen], self.length[chosen])


@dataclass(frozen=True)
class Carry:
    """Runs of some rows, sorted by length, that lead from the states of one chunk to those of another or of itself."""

    runs: Runs
    rows: Tensor
    source: int
    chunk: int


def split(episode_start: Tensor, valid: Tensor, chunks: Chunks) -> Runs:
    """The sequences of a rollout, split where a chunk or an episode starts and where steps are invalid."""
    valid, begins = valid.T.contiguous(), episode_start.T.clone()
    begins[:, chunks.first_steps] = True
    begins[:, 1:] |= ~valid[:, :-1]
    first = (begins & valid).flatten().nonzero().squeeze(1)
    run_of_step = (begins & valid).flatten().cumsum(0) - 1
    return Runs(first, run_of_step[valid.flatten()].bincount(minlength=len(first)))


class SequenceSamples:
    """Training sequences. Those at the start of a chunk begin with the recurrent state stored for it."""

    def __init__(self, rollout: Rollout, targets: Targets, recomputes: bool = False) -> None:
        assert rollout.chunks is not None
        self._chunks, self._recomputes = rollout.chunks, recomputes
        self._num_steps = len(rollout.reward)
        self.steps = map_rollout(lambda leaf: leaf.transpose(0, 1).flatten(0, 1), rollout, targets)
        self._valid, self._episode_start = rollout.valid.T.flatten(), self.steps.episode_start
        self.batch = map_batch(itemgetter(self._valid), self.steps)
        self.runs = split(rollout.episode_start, rollout.valid, rollout.chunks)
        self.num_units = len(self.runs.first)
        rows, steps = self.runs.first // self._num_steps, self.runs.first % self._num_steps
        self.place = torch.bucketize(steps, torch.tensor(rollout.chunks.first_steps), right=True) - 1, rows
        self._kept = self.state = rollout.state

    @property
    def padding(self) -> float:
        """The fraction of padding if all sequences were padded to equal length."""
        if not self.num_units:
            return 0.0
        return 1 - float(self.runs.length.sum()) / (self.num_units * int(self.runs.length.max()))

    def moved(self, move: Callable[[Tensor], Tensor]) -> "SequenceSamples":
        """The same sequences in other memory."""
        there = copy(self)
        there.steps = map_batch(move, self.steps)
        there._kept = there.state = tuple(map(move, self._kept))
        return there

    def minibatches(self, size: int, order: Tensor | None = None) -> Iterator[Batch]:
        """Minibatches of about `size` samples; every sequence occurs once."""
        order = torch.arange(self.num_units) if order is None else order
        return map(self.take, self.split(size, order))

    def split(self, size: int, order: Tensor) -> Iterator[Tensor]:
        """The sequences of each minibatch."""
        return _shares(order, self.runs.length[order], size)

    def take(self, units: Tensor) -> Batch:
        """Some sequences."""
        return self._packed(self.runs[units], *(place[units] for place in self.place))

    def advantages(self, units: Tensor) -> Tensor:
        """The advantages of all samples of some sequences, one sequence after the other."""
        first, length = self.runs.first[units], self.runs.length[units]
        begins = length.cumsum(0) - length
        index = torch.arange(int(length.sum())) + (first - begins).repeat_interleave(length)
        return self.steps.advantage[index.to(self.steps.advantage.device)]

    @torch.no_grad()
    def begin_epoch(self, policy: Policy) -> None:
        """Recompute the initial states of sequences with the current policy, if configured."""
        if self.carries:
            self.state = tuple(tensor.clone() for tensor in self._kept)
        for carry in self.carries:
            minibatch = self._packed(carry.runs, torch.full_like(carry.rows, carry.source), carry.rows)
            for tensor, carried in zip(self.state, policy(*minibatch.inputs).state, strict=True):
                tensor[carry.chunk, carry.rows.to(tensor.device)] = carried

    @cached_property
    def carries(self) -> list[Carry]:
        """The states that begin an epoch by being recomputed: from the chunk before, or from the start of a burn-in."""
        first_steps, kept_steps = self._chunks.first_steps, self._chunks.state_steps
        if not self._recomputes and first_steps == kept_steps:
            return []
        starts = [0, *first_steps[:-1]] if self._recomputes else kept_steps
        carries = (self._carry(chunk, starts[chunk]) for chunk in range(1, len(first_steps)))
        return [carry for carry in carries if len(carry.rows)]

    def _carry(self, chunk: int, since: int) -> Carry:
        """Every row from an earlier step to the first step of a chunk."""
        until = self._chunks.first_steps[chunk]
        table = slice(since, until)
        begins = self._episode_start.view(-1, self._num_steps)[:, table]
        lost = ~self._valid.view(-1, self._num_steps)[:, table]
        steps = torch.arange(until - since)
        # The state is zero at the last reset, so only later steps are recomputed.
        last_begin = torch.where(begins, steps, 0).amax(1)
        last_lost = torch.where(lost, steps, -1).amax(1)
        first = torch.maximum(last_begin, last_lost + 1)
        rows = first.argsort(stable=True)
        rows = rows[first[rows] < until - since]
        runs = Runs(rows * self._num_steps + since + first[rows], until - since - first[rows])
        return Carry(runs, rows, chunk - 1 if self._recomputes else chunk, chunk)

    def _packed(self, runs: Runs, chunk: Tensor, row: Tensor) -> Batch:
        """The packed samples of runs with the state of their chunk and row; runs sorted by length keep their order."""
        order = runs.length.argsort(descending=True, stable=True)
        runs = runs[order]
        state = _entries(self.state, chunk[order], row[order])
        runs_on = torch.arange(int(runs.length[0]))[:, None] < runs.length
        step, run = runs_on.nonzero(as_tuple=True)
        index = runs.first[run] + step
        return replace(pick(self.steps, index), state=state, batch_sizes=runs_on.sum(1))


def sequence_pieces(batch: Batch, size: int) -> Iterator[Batch]:
    """Split a minibatch of packed sequences into pieces of about `size` samples, without splitting sequences."""
    assert batch.batch_sizes is not None
    if len(batch) <= size:
        yield batch
        return
    running = _running(batch.batch_sizes)
    for chosen in _shares(torch.arange(running.shape[1]), running.sum(0), size):
        yield some_sequences(batch, chosen)


def some_sequences(batch: Batch, chosen: Tensor) -> Batch:
    """Sequences of a minibatch, packed in the order of the minibatch."""
    assert batch.batch_sizes is not None
    running, (chosen, _) = _running(batch.batch_sizes), chosen.sort()
    sequence, sizes = running.nonzero(as_tuple=True)[1], running[:, chosen].sum(1)
    return replace(
        pick(batch, torch.isin(sequence, chosen).nonzero().squeeze(1)),
        state=_entries(batch.state, chosen),
        batch_sizes=sizes[sizes > 0],
    )


def _entries(state: State, *index: Tensor) -> State:
    """The states with these indices."""
    return tuple(tensor[tuple(axis.to(tensor.device) for axis in index)] for tensor in state)


def _running(batch_sizes: Tensor) -> Tensor:
    """Whether each sequence has each step `[steps, sequences]`."""
    return torch.arange(int(batch_sizes[0])) < batch_sizes[:, None]


def _shares(units: Tensor, lengths: Tensor, size: int) -> Iterator[Tensor]:
    """Split units, in order, into shares of similar numbers of samples, at most about `size`."""
    total = int(lengths.sum())
    count = math.ceil(total / size)
    twice_middle = 2 * lengths.cumsum(0) - lengths
    share = twice_middle * count // (2 * total)
    for chosen in range(count):
        if (share == chosen).any():
            yield units[share == chosen]
