"""Who acts in which row: the policy that learns, or others with frozen weights (opponents, teachers, older selves)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from surefoot.core.errors import PolicyError
from surefoot.core.philox import Stream, uniforms
from surefoot.core.records import State
from surefoot.core.tree import tree_map
from surefoot.envs.protocol import VecEnv
from surefoot.policies.policy import Policy
from surefoot.rollout.buffer import RolloutBuffer

LEARNER = ""
"""The name of the policy that learns."""


class Actor:
    """Another policy, with its memory of every row."""

    def __init__(self, policy: Policy, num_rows: int) -> None:
        self.policy, self.memory = policy, policy.initial_state(num_rows)

    @torch.inference_mode()
    def act(self, rows: Tensor, inputs: tuple[Any, Tensor, Tensor | None], uniform: Tensor) -> Tensor:
        """Actions of some rows, ready for their environments."""
        obs, start, mask = inputs
        state: State = tuple(part[rows] for part in self.memory)
        output = self.policy(obs, state, start, mask)
        for part, after in zip(self.memory, output.state, strict=True):
            part[rows] = after
        return self.policy.head.to_env(output.distribution.sample(self.policy.head.noise(uniform)))


class Actors:
    """Assigns policies to rows. An assignment takes effect when the row's next episode starts, never inside one.

    Rows that another policy acts in are marked invalid when the rollout is complete, so they enter no loss and no
    statistic.
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
        """Whether the policy that learns acts in all rows, now and next."""
        return not (self._wanted.any() or self._acting.any())

    def add(self, name: str, policy: Policy) -> None:
        """Make a policy available under a name; one that has the name already is replaced and keeps its rows."""
        if not name:
            raise PolicyError("a policy that acts in some rows needs a name")
        actor = Actor(policy.eval(), self._env.num_rows)
        memory = self._saved_memory.pop(name, None)
        if memory is not None and [part.shape for part in memory] == [part.shape for part in actor.memory]:
            actor.memory = tuple(memory)
        self._others[name] = actor

    def assign(self, rows: Sequence[int] | NDArray[Any] | slice, name: str = LEARNER) -> None:
        """Let a policy act in rows from their next episodes on; without a name, the one that learns."""
        if name and name not in self._others:
            raise PolicyError(f"no policy '{name}' was added; known: {', '.join(self._others) or 'none'}")
        self._wanted[rows] = name

    def acting(self) -> list[str]:
        """The name of the policy that acts in each row; empty for the one that learns."""
        return [str(name) for name in self._acting]

    def begin(self) -> None:
        """Before a rollout."""
        missing = sorted({str(name) for name in (*self._wanted, *self._acting) if name} - set(self._others))
        if missing:
            raise PolicyError(f"rows are assigned to {', '.join(missing)}: add it again before the first rollout")
        self._was_other.zero_()

    def replace_actions(self, t: int, step: int, group: int, env_actions: Tensor) -> Tensor:
        """The environments' actions of a group of rows, those of other policies in their rows."""
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
        """After a rollout: rows of other policies are not learned from."""
        if self._was_other.any():
            self._buffer.valid.masked_fill_(self._was_other, False)

    def state(self) -> dict[str, Any]:
        """For checkpoints: who acts where, and memories; weights are for whoever adds the policies."""
        if self.is_alone and not self._others:
            return {}
        memory = {name: [part.clone() for part in actor.memory] for name, actor in self._others.items()}
        return {"wanted": list(self._wanted), "acting": list(self._acting), "memory": memory}

    def load_state(self, state: dict[str, Any]) -> None:
        """From a checkpoint; policies have to be added again, from `Hook.begin`."""
        if state and len(state["wanted"]) == len(self._wanted):
            self._wanted[:], self._acting[:] = state["wanted"], state["acting"]
            self._saved_memory = {name: list(parts) for name, parts in state["memory"].items()}
            for name, actor in self._others.items():
                self.add(name, actor.policy)
