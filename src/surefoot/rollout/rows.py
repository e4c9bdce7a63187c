"""The state of every row between rollouts: its environment, recurrent state and running episode."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from surefoot.data.moments import ObsMoments
from surefoot.data.records import Chunks, Rollout, RolloutStats, State
from surefoot.data.tree import tree_map
from surefoot.envs.protocol import OWN_STATE, VecEnv
from surefoot.envs.protocol.agent_parameters import without_agents
from surefoot.envs.protocol.calls import env_error
from surefoot.envs.protocol.checks import check_step
from surefoot.errors import SurefootError
from surefoot.philox import Stream, uniforms
from surefoot.policies.policy import Policy
from surefoot.rollout.actors import Actors
from surefoot.rollout.buffer import RolloutBuffer
from surefoot.rollout.episodes import EpisodeTracker
from surefoot.rollout.footprint import check_fits
from surefoot.storage.saved import Saved


class Rows:
    """The environments, their buffer, and the recurrent state of each row; `step` counts steps per row."""

    def __init__(self, env: VecEnv, policy: Policy, num_steps: int, seed: int, chunks: Chunks | None = None) -> None:
        self.env, self.seed, self._policy = env, seed, policy
        chunks = chunks or Chunks(num_steps, num_steps)
        check_fits(num_steps, env, policy, chunks)
        self.buffer = RolloutBuffer(num_steps, env, policy, chunks)
        self.episodes = EpisodeTracker(env)
        self.actors = Actors(env, self.buffer, seed)
        self.step = self.first_step = 0
        self._is_underway = False
        self._memories: list[State] = []
        self.is_exact = True
        """Whether the last loaded state was restored completely, including running episodes."""
        self.restart()

    def restart(self) -> None:
        """Reset every env and every recurrent state."""
        self.env.reset(self.buffer.opening, self.step)
        check_step(self.env, self.buffer.opening, self.step)
        self.buffer.episode_start[-1] = True
        self._set_memory(self._policy.initial_state(self.env.num_rows))
        self.episodes.forget_running()
        self._is_underway = False

    def restart_share(self, rows: slice) -> None:
        """Some rows were reset, and their opening is written: their running episodes are given up."""
        check_step(self.env, self.buffer.opening, self.step)
        self.buffer.episode_start[-1, rows] = True  # which also clears recurrent states
        self.episodes.forget_running(rows)

    def begin(self) -> None:
        """Prepare a rollout."""
        if self._is_underway:  # the last rollout was aborted
            self.restart()
        self.actors.begin()
        self.buffer.carry_over()
        self.first_step, self.step = self.step, self.step + len(self.buffer.slots)
        self._is_underway = True

    def settle(self) -> None:
        """After the last of single steps: complete the rows of other policies."""
        is_left = self.actors.finish()
        if is_left is not None:
            self._set_memory(
                tuple(tensor.masked_fill(is_left.view(-1, *[1] * (tensor.dim() - 1)), 0) for tensor in self.memory)
            )

    def abandon(self) -> None:
        """Give up the running episodes: the next rollout begins new ones."""
        self._is_underway = True

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Somebody else steps the envs meanwhile. Then they continue where they were, or begin new episodes."""
        envs = None if self._is_underway else self._saved_envs()
        try:
            yield
        finally:
            if envs is None:
                self.abandon()
            else:
                self.env.load_state(envs, self.step)

    def finish(self, stats: RolloutStats, obs_moments: ObsMoments | None = None) -> Rollout:
        """The finished rollout."""
        self._is_underway = False
        return self.buffer.rollout(stats, obs_moments)

    def beginning(self, rows: slice) -> dict[str, Any]:
        """What some rows bring into the rollout that begins, besides their envs, as arrays."""
        (memory,) = self._memories  # rows that are collected elsewhere are one group here
        return {
            "step": self.first_step,
            "opening": self.buffer.opening_of(rows),
            "memory": [tensor[rows].numpy() for tensor in memory],
            "episodes": self.episodes.running_in(rows),
        }

    def set_beginning(self, beginning: dict[str, Any]) -> None:
        """Begin the next rollout with what `beginning` returned elsewhere; the envs are already there."""
        self.step, self._is_underway = beginning["step"], False
        self.buffer.load_opening({name: tree_map(_tensor, whole) for name, whole in beginning["opening"].items()})
        self._set_memory(tuple(map(_tensor, beginning["memory"])))
        self.episodes.set_running(beginning["episodes"])

    @property
    def memory(self) -> State:
        """The recurrent state of every row."""
        return tuple(torch.cat(tensors) for tensors in zip(*self._memories, strict=True))

    def memory_of(self, group: int) -> State:
        """The recurrent state of a group's rows."""
        return self._memories[group]

    def memory_before(self, step: int, group: int) -> State:
        """The recurrent state before a step; stored if a training sequence starts there."""
        self.buffer.keep_state(step, self.env.groups[group], self._memories[group])
        return self._memories[group]

    def remember(self, group: int, memory: State) -> None:
        """Store the new recurrent state of a group's rows."""
        self._memories[group] = memory

    def _set_memory(self, memory: State) -> None:
        self._memories = [tuple(tensor[rows] for tensor in memory) for rows in self.env.groups]

    def noise(self, policy: Policy) -> Tensor:
        """The noise of the rollout `[T, N, ...]`: a function of only seed, step and row (S13, docs/semantics.md)."""
        steps = np.arange(self.first_step, self.step)
        rows = self.env.first_row + np.arange(self.env.num_rows)
        drawn = uniforms(self.seed, steps, rows, policy.head.noise_size, Stream.ACTION)
        return policy.head.noise(torch.from_numpy(drawn))

    def can_save_envs(self) -> bool:
        """Whether the envs can save their state."""
        return self._saved_envs() is not None

    def state(self) -> dict[str, Any]:
        """For checkpoints; `envs` is None if they cannot be saved, or if a rollout was aborted."""
        envs = None if self._is_underway else self._saved_envs()
        return {
            "step": self.step,
            "opening": self.buffer.opening_state(),
            "memory": list(self.memory),
            "episodes": self.episodes.state(),
            "actors": self.actors.state(),
            "envs": envs,
            "parameters": without_agents(self.env.parameter_values)
            if envs is None
            else {},  # the state of the envs includes them
        }

    def check_state(self, saved: Saved) -> None:
        """Check every entry; another engine or number of rows is allowed, and starts new episodes."""
        saved["step"].integer()
        self.episodes.check_state(saved["episodes"])
        envs, memory, actors = saved["envs"], saved["memory"], saved.get("actors")
        saved_parameters = [saved.get("parameters"), None if envs.value is None else envs.get("parameters")]
        for values in filter(None, saved_parameters):
            _check_parameters(values)
        if actors is not None:
            self.actors.check_state(actors)
        memory.items()
        if self.buffer.check_opening(saved["opening"]) and self._can_load(envs.value):
            memory.like(list(self.memory))
            own = self.env.save_state() or {}
            inner = {name: one for name, one in envs.value.items() if name != "parameters"}
            Saved(inner, envs.path).like({name: own[name] for name in inner}, free=OWN_STATE)

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore from a checkpoint; `is_exact` is false if the envs had to start new episodes."""
        self.step = state["step"]
        self.episodes.load_state(state["episodes"])
        self.is_exact = self.buffer.fits(state["opening"]) and self._can_load(state["envs"])
        if not self.is_exact:
            self.env.restore_parameters(state.get("parameters") or (state["envs"] or {}).get("parameters", {}))
            self.restart()
            return
        self.env.load_state(state["envs"], self.step)
        self.buffer.load_opening(state["opening"])
        check_step(self.env, self.buffer.opening, self.step)
        self._set_memory(tuple(state["memory"]))
        self.actors.load_state(state.get("actors", {}))

    def _can_load(self, saved: dict[str, Any] | None) -> bool:
        """Whether there is a state of the envs, and it was saved with the same engine."""
        own = self._saved_envs()
        return saved is not None and own is not None and saved.keys() == own.keys()

    def _saved_envs(self) -> dict[str, Any] | None:
        try:
            return self.env.save_state()
        except SurefootError:
            raise
        except BaseException as error:
            raise env_error("an env", "save_state", error) from error


def _tensor(array: NDArray[Any]) -> Tensor:
    """A copy: arrays from other processes are read-only."""
    return torch.from_numpy(np.array(array))


def _check_parameters(saved: Saved) -> None:
    """Refuse saved values that are not arrays of numbers; those that do not fit are not restored."""
    for entry in saved.entries().values():
        array = entry.array()
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiub" or array.size == 0:
            raise entry.wrong("an array of numbers")
