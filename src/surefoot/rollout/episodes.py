"""Episode statistics of rollouts."""

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from surefoot.data.records import Episode, Episodes, Obs, RolloutStats
from surefoot.data.specs import ObsSpec
from surefoot.data.tree import tree_items
from surefoot.envs.protocol import ALL_ROWS, SUCCESS_RATE, VecEnv
from surefoot.rollout.episode_metrics import EpisodeMetrics
from surefoot.storage.saved import Saved

WINDOW = 100
"""Number of episodes in rolling statistics."""


class EpisodeTracker:
    """Tracks the running episode of each row across rollouts: raw rewards, valid steps and env metrics."""

    def __init__(self, env: VecEnv) -> None:
        self._env, self._restarts = env, env.restarts
        self._reward = np.zeros(env.num_rows)
        self._length = np.zeros(env.num_rows, dtype=np.int64)
        self._metrics = EpisodeMetrics(env.metrics, env.num_rows)
        self._recent: deque[Episode] = deque(maxlen=WINDOW)

    @property
    def running(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Total reward and length so far of each row's episode; the native collector writes into them."""
        return self._reward, self._length

    @property
    def recent(self) -> tuple[Episode, ...]:
        """The last finished episodes; those of all processes, if several collect together."""
        return tuple(self._recent)

    @recent.setter
    def recent(self, episodes: Sequence[Episode]) -> None:
        self._recent = deque(episodes, maxlen=WINDOW)

    def absorb(
        self, obs: Obs, reward: Tensor, ended: Tensor, valid: Tensor, metrics: Tensor | None = None
    ) -> RolloutStats:
        """Statistics of a rollout, `[T, N]` each (metrics `[T, N, M]`); episodes are in order of their ends."""
        is_valid = valid.numpy()
        rewards = np.where(is_valid, reward.numpy().astype(np.float64), 0.0)
        ends = ended.numpy()
        total_rewards: list[float] = []
        lengths: list[int] = []
        begin = 0
        for step in np.flatnonzero(ends.any(axis=1)):
            self._advance(rewards[begin : step + 1], is_valid[begin : step + 1])
            for row in np.flatnonzero(ends[step]):
                if is_valid[step, row]:  # else a failed env cut the episode off
                    total_rewards.append(self._reward[row])
                    lengths.append(self._length[row])
                self._reward[row], self._length[row] = 0.0, 0
            begin = int(step) + 1
        self._advance(rewards[begin:], is_valid[begin:])
        outside = count_out_of_bounds(obs, valid, self._env.obs_spec)
        finished = Episodes(np.array(total_rewards, np.float64), np.array(lengths, np.int64))
        return self.adopt(self.with_metrics(finished, metrics, ended, valid), int(is_valid.sum()), outside)

    def with_metrics(self, finished: Episodes, metrics: Tensor | None, ended: Tensor, valid: Tensor) -> Episodes:
        """The episodes that finished in a rollout, with the metrics of their steps `[T, N, M]` summarized."""
        if metrics is None:
            return finished
        table = self._metrics.absorb(metrics.numpy(), ended.numpy(), valid.numpy())
        columns = dict(zip(self._metrics.names, table.T, strict=True))
        if SUCCESS_RATE in columns and np.isnan(columns[SUCCESS_RATE]).all():  # nobody declared it or reports it
            del columns[SUCCESS_RATE]
        return Episodes(finished.total_rewards, finished.lengths, columns)

    def adopt(self, finished: Episodes, num_steps: int, obs_out_of_bounds: int) -> RolloutStats:
        """Statistics of a rollout whose finished episodes are known, in order of their ends."""
        last: Iterable[Episode] = finished[-WINDOW:]
        self._recent.extend(map(_with_known_success, last) if SUCCESS_RATE in finished.metrics else last)
        restarts, self._restarts = self._env.restarts - self._restarts, self._env.restarts
        return RolloutStats(num_steps, finished, tuple(self._recent), obs_out_of_bounds, restarts)

    def _advance(self, rewards: NDArray[np.float64], valid: NDArray[np.bool_]) -> None:
        self._reward += rewards.sum(axis=0)
        self._length += valid.sum(axis=0)

    def state(self) -> dict[str, Any]:
        """For checkpoints."""
        return {
            "reward": self._reward.copy(),
            "length": self._length.copy(),
            "recent": [[episode.total_reward, episode.length, episode.metrics] for episode in self._recent],
        } | ({"metrics": self._metrics.state()} if self._metrics.names else {})

    def check_state(self, saved: Saved) -> None:
        """Check types, shapes and signs; the number of rows may differ."""
        for episode in saved["recent"].items():
            reward, length, *metrics = episode.items() if len(episode.items()) in (2, 3) else [episode] * 2
            reward.number()
            length.integer()
            for value in metrics[0].entries().values() if metrics else []:
                if not isinstance(value.value, float | int):
                    raise value.wrong("a number")
        rows = saved["reward"].array().shape
        ours = {"reward": np.zeros(rows), "length": np.zeros(rows, np.int64)}
        saved.only(ours).like(ours)
        if len(rows) != 1 or (saved["length"].value < 0).any():
            raise saved["length"].wrong("one count per row")
        running = saved.get("metrics")
        if running is not None:
            self._metrics.check_state(running, rows[0])

    def load_state(self, state: dict[str, Any]) -> None:
        """From a checkpoint."""
        self._recent = deque((Episode(*pair) for pair in state["recent"]), maxlen=WINDOW)
        if len(state["reward"]) == len(self._reward):
            self._reward, self._length = np.array(state["reward"]), np.array(state["length"])
            self._metrics.load_state(state.get("metrics"), self._length > 0)

    def forget_running(self, rows: slice = ALL_ROWS) -> None:
        """The episodes of the rows were cut off: their envs start new ones."""
        self._reward[rows], self._length[rows] = 0.0, 0
        self._metrics.forget_running(rows)

    def running_in(self, rows: slice = ALL_ROWS) -> list[NDArray[Any]]:
        """The running episodes of some rows, for whoever collects these rows elsewhere."""
        return [array[rows] for array in (*self.running, *self._metrics.running())]

    def set_running(self, running: list[NDArray[Any]], rows: slice = ALL_ROWS) -> None:
        """Continue the running episodes of some rows."""
        for own, given in zip((*self.running, *self._metrics.running()), running, strict=True):
            own[rows] = given


def _with_known_success(episode: Episode) -> Episode:
    """Without the success that nobody declared, if the env did not report it either."""
    if not math.isnan(episode.metrics.get(SUCCESS_RATE, 0.0)):
        return episode
    return replace(episode, metrics={name: one for name, one in episode.metrics.items() if name != SUCCESS_RATE})


def count_out_of_bounds(obs: Obs, valid: Tensor, spec: ObsSpec) -> int:
    """Number of elements outside their Box in valid steps; discrete observations are checked when they are read."""
    count = 0
    for (_, leaf), (_, one) in zip(tree_items(obs), tree_items(spec), strict=True):
        if one.kind in ("box", "multi_binary"):
            low, high = (torch.as_tensor(bound, dtype=torch.float32) for bound in one.bounds())
            if torch.isfinite(low).any() or torch.isfinite(high).any():
                count += int(((leaf < low) | (leaf > high))[valid].sum())
    return count
