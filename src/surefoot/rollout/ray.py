"""The collector for rows on many machines: every actor collects its share, and this process puts them together.

Bit for bit what one machine collects with the same engine: seeds and noise follow from the numbers of rows
(S13, docs/semantics.md), and statistics of rows are merged in the order of rows. While other policies act in some rows,
this process computes the actions of all rows, step by step, because Ray actors have only the learning policy: then the
bits are those of the engine `local`.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from surefoot.data.moments import Moments, ObsMoments
from surefoot.data.records import Chunks, Episodes, Rollout
from surefoot.data.tree import tree_map
from surefoot.envs.engines.native import NativeEngine
from surefoot.envs.engines.ray import RayActor, RayEngine
from surefoot.native import core
from surefoot.policies.packed import PackedPolicy, ReceivedPolicy, packed
from surefoot.policies.policy import Policy
from surefoot.rollout.collector import Collector
from surefoot.rollout.native import NativeCollector, native_collector
from surefoot.rollout.rows import Rows
from surefoot.rollout.stepwise import StepwiseCollector

_log = logging.getLogger("surefoot")


class RayCollector:
    """Sends the policy once per rollout; all shares act with the newest policy."""

    def __init__(self, env: RayEngine, policy: Policy, num_steps: int, seed: int, chunks: Chunks | None = None) -> None:
        first = _sent(env, policy)
        env.set_up(prepare, lambda share: (first, num_steps, seed, chunks))
        self._env, self.rows = env, Rows(env, policy, num_steps, seed, chunks)
        self._stepwise, self._has_told = StepwiseCollector(env, policy, num_steps, seed, rows=self.rows), False
        why = f" ({env.why_not_native})" * bool(env.why_not_native)
        where = f"{len(env.shares)} Ray actors on {len(env.hosts)} machine{'s' * (len(env.hosts) > 1)}"
        self.description, self.is_native = f"{where}, {env.inner} in each{why}", False

    def collect(self, policy: Policy) -> Rollout:
        """T steps of every row, on all machines at once."""
        rows, env = self.rows, self._env
        if not rows.actors.is_alone:
            if not self._has_told:
                _log.info("rollouts: step by step, because other policies act in some rows, and Ray actors have none")
            self._has_told = True
            return self._stepwise.collect(policy)  # slow: one call per step
        sent = _sent(env, policy)
        rows.begin()
        shares = env.ask(collect_share, lambda share: (sent, rows.beginning(env.shares[share])), self._restart)
        for place, share in zip(env.shares, shares, strict=True):
            self._copy(place, share)
        rows.settle()
        memory = zip(*(share.memory for share in shares), strict=True)
        rows.remember(0, tuple(torch.from_numpy(np.concatenate(of_shares)) for of_shares in memory))
        stats = rows.episodes.adopt(
            self._finished(shares),
            sum(share.num_steps for share in shares),
            sum(share.out_of_bounds for share in shares),
        )
        return rows.finish(stats, merged(shares))

    def _restart(self, share: int) -> None:
        """Begin the rollout of a share with new episodes."""
        self._env.reset_share(share, self.rows.buffer.opening, self.rows.first_step)
        self.rows.restart_share(self._env.shares[share])

    def _copy(self, place: slice, share: "CollectedShare") -> None:
        """The only copy in this process: from the answer into the learner's tensors."""
        buffer = self.rows.buffer
        for name, own in share.tensors.items():
            tree_map(lambda leaf, own: np.copyto(leaf.numpy()[:, place], own), buffer.tensors[name], own)
        buffer.last_value.numpy()[place] = share.last_value
        for kept, own in zip(buffer.state, share.state, strict=True):
            kept.numpy()[:, place] = own
        self.rows.episodes.set_running(share.running, place)

    def _finished(self, shares: Sequence["CollectedShare"]) -> Episodes:
        """The episodes of all shares in the order of their ends: by step, then by row."""
        buffer = self.rows.buffer
        is_end = ((buffer.terminated | buffer.truncated) & buffer.valid).numpy()

        def ordered(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
            table = np.empty(is_end.shape, columns[0].dtype)
            for place, column in zip(self._env.shares, columns, strict=True):
                table[:, place][is_end[:, place]] = column
            in_order: NDArray[Any] = table[is_end]
            return in_order

        finished = [share.finished for share in shares]
        metrics = {name: ordered([one.metrics[name] for one in finished]) for name in finished[0].metrics}
        return Episodes(
            ordered([one.total_rewards for one in finished]), ordered([one.lengths for one in finished]), metrics
        )


def _sent(env: RayEngine, policy: Policy) -> Any:
    sent = packed(policy)
    return env.put(sent, sent.num_bytes)


@dataclass(frozen=True)
class CollectedShare:
    """The rollout of a share as arrays, which travel without being pickled."""

    tensors: dict[str, Any]
    last_value: NDArray[np.float32]
    state: list[NDArray[Any]]
    memory: list[NDArray[Any]]
    running: list[NDArray[Any]]
    finished: Episodes
    num_steps: int
    out_of_bounds: int
    moments: dict[str, list[NDArray[np.float64]]] | None
    """Counts, means and variances of every row, by key of the observation; None if the learner computes them."""


class ShareCollector(NativeCollector):
    """Keeps the moments of each row apart, because the order of merging decides the last bits."""

    def _moments(self, result: Any) -> dict[str, Moments]:
        moments = {}
        for leaf, key in enumerate(self._keys):
            if self._normalized[leaf]:
                count, mean, variance = map(torch.from_numpy, result.row_moments(leaf))
                shape = (len(count), *self._obs_spec(key).shape)
                moments[key] = Moments(count, mean.reshape(shape), variance.reshape(shape))
        return moments


@dataclass(frozen=True)
class Prepared:
    """What an actor keeps between rollouts."""

    collector: Collector
    policy: ReceivedPolicy


def prepare(actor: RayActor, sent: PackedPolicy, num_steps: int, seed: int, chunks: Chunks | None) -> None:
    """On an actor: create its collector; whoever calls this resets or loads the envs afterwards."""
    torch.set_num_threads(1)  # as while collecting on one machine
    received = ReceivedPolicy()
    policy = received.update(sent)
    collector: Collector
    if isinstance(actor.env, NativeEngine):
        collector = native_collector(actor.env, policy, num_steps, seed, chunks, ShareCollector)
    else:
        collector = StepwiseCollector(actor.env, policy, num_steps, seed, chunks)
    actor.kept = Prepared(collector, received)


def collect_share(actor: RayActor, sent: PackedPolicy, beginning: dict[str, Any]) -> CollectedShare:
    """On an actor: one rollout of its rows."""
    prepared: Prepared = actor.kept
    rows = prepared.collector.rows
    rows.set_beginning(beginning)
    rollout = prepared.collector.collect(prepared.policy.update(sent))
    moments = rollout.obs_moments
    return CollectedShare(
        tensors={name: tree_map(lambda leaf: leaf.numpy(), whole) for name, whole in rows.buffer.tensors.items()},
        last_value=rollout.last_value.numpy(),
        state=[tensor.numpy() for tensor in rollout.state],
        memory=[tensor.numpy() for tensor in rows.memory],
        running=rows.episodes.running_in(),
        finished=rollout.stats.finished,
        num_steps=rollout.stats.num_steps,
        out_of_bounds=rollout.stats.obs_out_of_bounds,
        moments=None
        if moments is None
        else {key: [number.numpy() for number in (one.count, one.mean, one.var)] for key, one in moments.items()},
    )


def merged(shares: Sequence[CollectedShare]) -> ObsMoments | None:
    """The moments of all rows together, by key, as the core merges those of one machine."""
    known = [share.moments for share in shares if share.moments is not None]
    if len(known) < len(shares):
        return None
    return {key: _merged([moments[key] for moments in known]) for key in known[0]}


def _merged(found: Sequence[list[NDArray[np.float64]]]) -> Moments:
    counts, means, variances = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    rows, shape = len(counts), means.shape[1:]
    size = means.size // rows
    flat_means, flat_variances = means.reshape(rows, size), variances.reshape(rows, size)
    count, mean, variance = core().merged_moments(counts, flat_means, flat_variances, rows, size)
    tensors = [torch.from_numpy(array).reshape(shape) for array in (mean, variance)]
    return Moments(torch.tensor(count, dtype=torch.float64), *tensors)
