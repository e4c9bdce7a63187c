"""The policies that act in each row: the learning one, or others with frozen weights (opponents, teachers)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from surefoot.core.errors import PolicyError
from surefoot.core.philox import Stream, uniforms
from surefoot.core.records import State
from surefoot.core.saved import Saved
from surefoot.core.tree import tree_map
from surefoot.envs.protocol import VecEnv
from surefoot.policies.policy import Policy
from surefoot.rollout.buffer import RolloutBuffer

LEARNER = ""
"""The name of the learning policy."""


class Actor:
    """Another policy, with its recurrent state for every row."""

    def __init__(self, policy: Policy, num_rows: int) -> None:
        self.policy, self.memory = policy, policy.initial_state(num_rows)

    @torch.inference_mode()
    def act(self, rows: Tensor, inputs: tuple[Any, Tensor, Tensor | None], uniform: Tensor) -> Tensor:
        """Env actions for some rows."""
        obs, start, mask = inputs
        state: State = tuple(part[rows] for part in self.memory)
        output = self.policy(obs, state, start, mask)
        for part, after in zip(self.memory, output.state, strict=True):
            part[rows] = after
        return self.policy.head.to_env(output.distribution.sample(self.policy.head.noise(uniform)))


class Actors:
    """Assigns policies to rows. An assignment takes effect when the row's next episode starts, never inside one.

    Rows in which another policy acts are marked invalid when the rollout is complete, so they are masked out of all
    losses and statistics.
    """

    def __init__(self, env: VecEnv, buffer: RolloutBuffer, seed: int) -> None:
        self._env, self._buffer, self._seed = env, buffer, seed
        self._others: dict[str, Actor] = {}
        self._wanted: NDArray[Any] = np.full(env.num_rows, LEARNER, dtype=object)
        self._acting = self._wanted.copy()
        self._was_other = torch.zeros(buffer.reward.shape, dtype=torch.bool)
        self._saved_memory: dict[str, list[Tensor]] = {}

    @property
    def is_alone(self) -> bool:
        """Whether the learning policy acts in all rows, including the next episodes."""
        return not (self._wanted.any() or self._acting.any())

    def add(self, name: str, policy: Policy) -> None:
        """Add a policy under a name; a policy with the same name is replaced, and its rows are kept."""
        if not name:
            raise PolicyError("the name of an added policy must not be empty; the empty name is the learning policy")
        actor = Actor(policy.eval(), self._env.num_rows)
        memory = self._saved_memory.pop(name, None)
        if memory is not None and [part.shape for part in memory] == [part.shape for part in actor.memory]:
            actor.memory = tuple(memory)
        self._others[name] = actor

    def assign(self, rows: Sequence[int] | NDArray[Any] | slice, name: str = LEARNER) -> None:
        """Let a policy act in rows, starting with their next episodes; without a name, the learning policy."""
        if name and name not in self._others:
            raise PolicyError(f"unknown policy '{name}'; add it first (known: {', '.join(self._others) or 'none'})")
        self._wanted[rows] = name

    def acting(self) -> list[str]:
        """The name of the policy that acts in each row; empty for the learning policy."""
        return [str(name) for name in self._acting]

    def begin(self) -> None:
        """Check before a rollout that all assigned policies were added."""
        missing = sorted({str(name) for name in (*self._wanted, *self._acting) if name} - set(self._others))
        if missing:
            raise PolicyError(f"rows are assigned to {', '.join(missing)}; add it again before the first rollout")
        self._was_other.zero_()

    def replace_actions(self, t: int, step: int, group: int, env_actions: Tensor) -> Tensor:
        """Env actions for a group of rows, with the actions of other policies in their rows."""
        if self.is_alone:
            return env_actions
        rows = self._env.groups[group]
        obs, _, start, mask = self._buffer.inputs_at(t, (), group)
        acting, wanted = self._acting[rows], self._wanted[rows]
        acting[:] = np.where(start.numpy(), wanted, acting)
        for name in sorted({str(name) for name in acting if name}):
            here = torch.from_numpy(np.flatnonzero(acting == name))
            actor, where = self._others[name], here + rows.start
            drawn = uniforms(
                self._seed, [step], self._env.first_row + where.numpy(), actor.policy.head.noise_size, Stream.ACTION
            )[0]
            part = (
                tree_map(lambda leaf, here=here: leaf[here], obs),
                start[here],
                None if mask is None else mask[here],
            )
            env_actions[here] = actor.act(where, part, torch.from_numpy(drawn)).to(env_actions.dtype)
            self._was_other[t, where] = True
        return env_actions

    def finish(self) -> None:
        """After a rollout, mark the rows of other policies as invalid."""
        if self._was_other.any():
            self._buffer.valid.masked_fill_(self._was_other, False)

    def state(self) -> dict[str, Any]:
        """For checkpoints: assignments and recurrent states, without the weights of the other policies."""
        if self.is_alone and not self._others:
            return {}
        memory = {name: [part.clone() for part in actor.memory] for name, actor in self._others.items()}
        return {"wanted": list(self._wanted), "acting": list(self._acting), "memory": memory}

    def check_state(self, saved: Saved) -> None:
        """Check names and recurrent states; the number of rows may differ."""
        if not saved.entries():
            return
        names = [[entry.text() for entry in saved[which].items()] for which in ("wanted", "acting")]
        if len(names[0]) != len(names[1]):
            raise saved["acting"].wrong(f"a list of {len(names[0])}")
        for parts in saved["memory"].entries().values():
            for part in parts.items():
                if not isinstance(part.array(), Tensor):
                    raise part.wrong("a tensor")
                part.finite()

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore from a checkpoint; the other policies must be added again in `Hook.begin`."""
        if state and len(state["wanted"]) == len(self._wanted):
            self._wanted[:], self._acting[:] = state["wanted"], state["acting"]
            self._saved_memory = {name: list(parts) for name, parts in state["memory"].items()}
            for name, actor in self._others.items():
                self.add(name, actor.policy)
