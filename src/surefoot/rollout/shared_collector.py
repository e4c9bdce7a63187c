"""Collects the own rows and exchanges with all other processes what scoring, statistics and shuffling need."""

from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import torch
from torch import Tensor

from surefoot.data.moments import Moments, ObsMoments
from surefoot.data.records import Episodes, Rollout, RolloutStats
from surefoot.data.tree import tree_items
from surefoot.machine.ranks import Ranks
from surefoot.policies.policy import Policy
from surefoot.rollout.collector import Collector
from surefoot.rollout.episodes import WINDOW
from surefoot.rollout.shared import SharedRollout

_EXCHANGED = ("log_prob", "value", "reward", "terminated", "truncated", "final_value", "episode_start", "valid")
"""Small fields `[T, N]`; observations, actions, masks and recurrent states stay where they are."""


class SharedCollector:
    """Gives each process its own rows, with the statistics and the small fields of all rows."""

    def __init__(self, collector: Collector, ranks: Ranks) -> None:
        self._collector, self._ranks = collector, ranks
        self.rows, self.description, self.is_native = collector.rows, collector.description, collector.is_native

    def collect(self, policy: Policy) -> SharedRollout:
        """T steps of the own rows."""
        recent = self.rows.episodes.recent
        rollout = self._collector.collect(policy)
        stats, own = rollout.stats, {name: getattr(rollout, name).numpy() for name in _EXCHANGED}
        columns = {"total_rewards": stats.finished.total_rewards, "lengths": stats.finished.lengths}
        told: dict[str, Any] = {
            "fields": own,
            "last_value": rollout.last_value.numpy(),
            "extras": {name: extra.numpy() for name, extra in rollout.extras.items()},
            "moments": _own_moments(policy, rollout),
            "episodes": columns | {f"env/{name}": column for name, column in stats.finished.metrics.items()},
            "counts": (stats.num_steps, stats.obs_out_of_bounds, stats.worker_restarts),
        }
        everyone = self._ranks.gather(told)
        whole = _whole(rollout, everyone)
        finished = _merged_episodes(whole, everyone)
        whole = replace(whole, stats=RolloutStats(*_totals(finished, everyone, recent)))
        self.rows.episodes.recent = whole.stats.recent
        first = sum(len(one["last_value"]) for one in everyone[: self._ranks.rank])
        rows = slice(first, first + len(rollout.last_value))
        moments = merged([one["moments"] for one in everyone])
        mine = vars(rollout) | {"stats": whole.stats, "obs_moments": moments}
        return SharedRollout(**mine, whole=whole, own=rows, merge=self._merge)

    def _merge(self, moments: ObsMoments) -> ObsMoments:
        return merged(self._ranks.gather(moments))


def _own_moments(policy: Policy, rollout: Rollout) -> ObsMoments:
    if rollout.obs_moments is not None:
        return rollout.obs_moments
    normalizers = policy.obs_normalizers()
    leaves = ((key, leaf) for key, leaf in tree_items(rollout.obs) if key in normalizers)
    return {key: Moments.of(leaf.flatten(0, 1)[rollout.valid.flatten()]) for key, leaf in leaves}


def merged(everyone: list[ObsMoments]) -> ObsMoments:
    """The moments of all processes, in the order of the ranks: the same bits in all of them."""
    known = {key: [each[key] for each in everyone if each[key].count] for key in everyone[0]}
    return {key: reduce(Moments.merge, found or [everyone[0][key]]) for key, found in known.items()}


def _whole(rollout: Rollout, everyone: list[dict[str, Any]]) -> Rollout:
    def joined(arrays: list[Any], axis: int = 1) -> Tensor:
        return torch.from_numpy(np.concatenate(arrays, axis))

    named: dict[str, Any] = {name: joined([one["fields"][name] for one in everyone]) for name in _EXCHANGED}
    nothing = torch.zeros(*named["reward"].shape, 0)
    extras = {name: joined([one["extras"][name] for one in everyone]) for name in rollout.extras}
    last_value = joined([one["last_value"] for one in everyone], axis=0)
    empty: dict[str, Any] = {"obs": nothing, "action": nothing, "action_mask": None, "state": ()}
    return replace(rollout, **named, **empty, last_value=last_value, extras=extras, obs_moments=None)


def _merged_episodes(whole: Rollout, everyone: list[dict[str, Any]]) -> Episodes:
    """The finished episodes of all processes in order of their ends."""
    row = (whole.valid & (whole.terminated | whole.truncated)).nonzero()[:, 1].numpy()
    ends = np.cumsum([len(one["last_value"]) for one in everyone])
    place = np.argsort(np.searchsorted(ends, row, side="right"), kind="stable")
    merged = {}
    for name in everyone[0]["episodes"]:
        column = np.concatenate([one["episodes"][name] for one in everyone])
        merged[name] = np.empty_like(column)
        merged[name][place] = column
    metrics = {name.removeprefix("env/"): merged.pop(name) for name in list(merged) if name.startswith("env/")}
    return Episodes(**merged, metrics=metrics)


def _totals(finished: Episodes, everyone: list[dict[str, Any]], recent: tuple[Any, ...]) -> tuple[Any, ...]:
    steps, outside, restarts = (sum(counts) for counts in zip(*(one["counts"] for one in everyone), strict=True))
    return steps, finished, (*recent, *finished[-WINDOW:])[-WINDOW:], outside, restarts
