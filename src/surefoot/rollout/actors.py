"""Assigns rows to the learning policy, to others with frozen weights (opponents, teachers), or to functions."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from surefoot.data.records import State
from surefoot.data.tree import tree_map
from surefoot.envs.protocol import VecEnv
from surefoot.errors import PolicyError
from surefoot.output.failures import brief
from surefoot.output.quoted import quoted
from surefoot.philox import Stream, uniforms
from surefoot.policies.policy import Policy
from surefoot.rollout.buffer import RolloutBuffer
from surefoot.rollout.fields import COLLECTOR, Field, array
from surefoot.rollout.script import Function, Script
from surefoot.storage.saved import Saved

LEARNER = ""
"""The name of the learning policy, which has the number 0."""
NOBODY = -1
"""In the field `actor`: an auto-reset step, or an agent that does not take part."""


class Actor:
    """Another policy, with its recurrent state for every row. Its critic is not used, nor is that critic's memory."""

    def __init__(self, policy: Policy, num_rows: int, is_followed: bool = False) -> None:
        self.policy, self.memory, self.is_followed = policy, policy.initial_state(num_rows), is_followed
        self.noise_size = policy.head.noise_size

    @torch.inference_mode()
    def act(self, rows: Tensor, inputs: tuple[Any, Tensor, Tensor | None], uniform: Tensor) -> tuple[Tensor, Tensor]:
        """Raw actions and env actions for some rows."""
        obs, start, mask = inputs
        state: State = tuple(tensor[rows] for tensor in self.memory)
        output = self.policy(obs, state, start, mask)
        for tensor, after in zip(self.memory[: self.policy.actor_parts], output.state, strict=False):
            tensor[rows] = after
        action = output.distribution.sample(self.policy.head.noise(uniform))
        return action, self.policy.head.to_env(action)


class Actors:
    """Assigns policies to rows. An assignment takes effect when the row's next episode starts, never inside one.

    Once a policy was added, rollouts have the field `actor`: the number of the policy that acted, 0 for the learning
    policy, or -1 where nobody acted. Terms read it in minibatches. Other policies are numbered in the order in which
    their names were first added. Their steps are not valid, so they are masked out of all losses and statistics. They
    have the action that was taken, but no log-probability and no value, which are 0.
    """

    def __init__(self, env: VecEnv, buffer: RolloutBuffer, seed: int) -> None:
        self._env, self._buffer, self._seed = env, buffer, seed
        self._others: dict[str, Actor | Script] = {}
        self._numbers = {LEARNER: 0}
        self.wanted: NDArray[np.int64] = np.zeros(env.num_rows, np.int64)
        """The number of the policy that acts in each row from its next episode on."""
        self.now_acting = self.wanted.copy()
        """The number of the policy that acts in each row."""
        self._saved_memory: dict[str, list[Tensor]] = {}

    @property
    def is_alone(self) -> bool:
        """Whether the learning policy acts in all rows, including the next episodes."""
        return len(self._numbers) == 1 or not (self.wanted.any() or self.now_acting.any())

    @property
    def numbers(self) -> dict[str, int]:
        """The numbers of all policies that were ever added, by name, as in the field `actor`."""
        return dict(self._numbers)

    def add(self, name: str, policy: Policy | Function, *, is_followed: bool = False) -> None:
        """Add a policy or a function under a name; one with the same name is replaced, and its rows are kept.

        A function gets observations [B, ...] (a dict of them where the env has one) and, where the env masks actions,
        the masks [B, choices]; it returns env actions [B, ...]. With `is_followed`, the recurrent state of the learning
        policy is also computed in the rows of the added policy, for terms that learn from them.
        """
        if not isinstance(name, str):
            raise PolicyError(f"the name of an added policy must be a string, not {quoted(name)}")
        if not name:
            raise PolicyError("the name of an added policy must not be empty; the empty name is the learning policy")
        if not callable(policy):
            raise PolicyError(f"'{name}' must be a policy or a function of observations, not {quoted(policy)}")
        if "actor" not in self._buffer.fields:
            self._buffer.add(Field("actor", array(dtype="int64"), COLLECTOR))
        self._others[name] = self._actor(name, policy, is_followed)
        self._numbers.setdefault(name, 1 + max(self._numbers.values()))

    def _actor(self, name: str, policy: Policy | Function, is_followed: bool) -> Actor | Script:
        if not isinstance(policy, Policy):
            return Script(policy, name, self._env.action_spec, is_followed)
        actor = Actor(policy.eval(), self._env.num_rows, is_followed)
        self._check_fit(name, Actor(actor.policy, 1))
        memory = self._saved_memory.pop(name, None)
        if memory is not None and [tensor.shape for tensor in memory] == [tensor.shape for tensor in actor.memory]:
            actor.memory = tuple(memory)
        return actor

    def remove(self, name: str) -> None:
        """Remove an added policy that acts in no row; its number stays reserved for its name."""
        if name not in self._others:
            raise PolicyError(f"unknown policy '{name}' (known: {', '.join(self._others) or 'none'})")
        number = self._numbers[name]
        rows = np.flatnonzero((self.wanted == number) | (self.now_acting == number))
        if len(rows):
            raise PolicyError(
                f"'{name}' cannot be removed: it still acts in {len(rows)} rows, such as row {rows[0]}; assign them to"
                " another policy and wait for their episodes to end"
            )
        del self._others[name]

    def assign(self, rows: Sequence[int] | NDArray[Any] | slice, name: str = LEARNER) -> None:
        """Let a policy act in rows, starting with their next episodes; without a name, the learning policy."""
        if name and name not in self._others:
            raise PolicyError(f"unknown policy '{name}'; add it first (known: {', '.join(self._others) or 'none'})")
        self.wanted[rows] = self._numbers[name]

    def acting(self) -> list[str]:
        """The name of the policy that acts in each row; empty for the learning policy."""
        return self._names(self.now_acting)

    def assigned(self) -> dict[str, Actor | Script]:
        """The other policies that act in rows now or from their next episodes on, by name."""
        return {name: self._others[name] for name in self._assigned_names() if name in self._others}

    def begin(self) -> None:
        """Check before a rollout that all assigned policies were added."""
        missing = [name for name in self._assigned_names() if name not in self._others]
        if missing:
            raise PolicyError(f"rows are assigned to {', '.join(missing)}; add it again before the first rollout")
        if "actor" in self._buffer.fields:
            self._buffer.actor.zero_()

    def replace(self, t: int, step: int, group: int, action: Tensor, env_actions: Tensor) -> tuple[Tensor, Tensor]:
        """Raw and env actions for a group of rows, with the actions of other policies in their rows."""
        if self.is_alone:
            return action, env_actions
        action, env_actions, rows = action.clone(), env_actions.clone(), self._env.groups[group]
        obs, _, start, mask = self._buffer.inputs_at(t, (), group)
        acting = self.now_acting[rows]
        acting[:] = np.where(start.numpy(), self.wanted[rows], acting)
        self._buffer.actor[t, rows] = torch.from_numpy(acting)
        for name, actor in self._others.items():
            here = torch.from_numpy(np.flatnonzero(acting == self._numbers[name]))
            if not len(here):
                continue
            numbers = self._env.first_row + rows.start + here.numpy()
            uniform = uniforms(self._seed, [step], numbers, actor.noise_size, Stream.ACTION)[0]
            seen = (
                tree_map(lambda leaf, here=here: leaf[here], obs),
                start[here],
                None if mask is None else mask[here],
            )
            raw, taken = actor.act(here + rows.start, seen, torch.from_numpy(uniform))
            action[here] = raw.reshape(action[here].shape).to(action.dtype)
            env_actions[here] = taken.to(env_actions.dtype)
        return action, env_actions

    def finish(self) -> Tensor | None:
        """Complete the fields of the rows of other policies after a rollout of single steps.

        Returns the rows [N] in which the learning policy does not remember anything, if there are any.
        """
        if "actor" not in self._buffer.fields:
            return None
        buffer, actor = self._buffer, self._buffer.actor
        is_other, unfollowed = actor > 0, [self._numbers[n] for n, one in self._others.items() if not one.is_followed]
        is_left = torch.isin(actor, torch.tensor(unfollowed, dtype=torch.int64))
        actor.masked_fill_(~buffer.valid, NOBODY)
        if not is_other.any():
            return None
        buffer.disown(is_other, is_left)
        return is_left[-1]

    def state(self) -> dict[str, Any]:
        """For checkpoints: assignments and recurrent states, without the weights of the other policies."""
        if len(self._numbers) == 1:
            return {}
        memory = {name: [tensor.clone() for tensor in actor.memory] for name, actor in self._others.items()}
        wanted, acting = self._names(self.wanted), self._names(self.now_acting)
        return {"wanted": wanted, "acting": acting, "memory": memory, "numbers": dict(self._numbers)}

    def check_state(self, saved: Saved) -> None:
        """Check names and recurrent states; the number of rows may differ."""
        if not saved.entries():
            return
        names = [[entry.text() for entry in saved[which].items()] for which in ("wanted", "acting")]
        if len(names[0]) != len(names[1]):
            raise saved["acting"].wrong(f"a list of {len(names[0])}")
        for tensors in saved["memory"].entries().values():
            for tensor in tensors.items():
                if not isinstance(tensor.array(), Tensor):
                    raise tensor.wrong("a tensor")
                tensor.finite()
        numbers = saved.get("numbers")  # old checkpoints have none
        if numbers is not None:
            given = [entry.integer() for entry in numbers.entries().values()]
            if len(set(given)) < len(given) or numbers.value.get(LEARNER) != 0:
                raise numbers.wrong("a different number for each name, 0 for the learning policy")

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore from a checkpoint; the other policies must be added again in `Hook.begin`."""
        if state and len(state["wanted"]) == len(self.wanted):
            self._numbers = dict(state.get("numbers", {LEARNER: 0}))
            for name in (*state["wanted"], *state["acting"], *self._others):
                self._numbers.setdefault(name, 1 + max(self._numbers.values()))
            for numbers, names in ((self.wanted, state["wanted"]), (self.now_acting, state["acting"])):
                numbers[:] = [self._numbers[name] for name in names]
            self._saved_memory = {name: list(tensors) for name, tensors in state["memory"].items()}
            for name, actor in self._others.items():
                self.add(name, actor.policy, is_followed=actor.is_followed)

    def _check_fit(self, name: str, actor: Actor) -> None:
        """Refuse a policy that cannot act on the first row's observation."""
        obs, _, start, mask = self._buffer.inputs_at(-1, ())
        first = tree_map(lambda leaf: leaf[:1], obs), start[:1], None if mask is None else mask[:1]
        wanted, problem = (1, *self._env.action_spec.shape), ""
        try:
            shape = tuple(
                actor.act(torch.zeros(1, dtype=torch.int64), first, torch.zeros(1, actor.noise_size))[1].shape
            )
            if shape != wanted:
                problem = f"its actions have shape {shape}, not {wanted}"
        except Exception as error:
            problem = brief(error)
        if problem:
            raise PolicyError(f"'{name}' cannot act in these envs; it may be a policy for other envs ({problem})")

    def _assigned_names(self) -> list[str]:
        return [] if self.is_alone else sorted({*self._names(np.union1d(self.wanted, self.now_acting))} - {LEARNER})

    def _names(self, numbers: NDArray[np.int64]) -> list[str]:
        names = {number: name for name, number in self._numbers.items()}
        return [names[number] for number in numbers.tolist()]
