"""Checks of a custom env without any adapter.

Do its observations match its observation space? Does it return the same array at every step? A rollout must not depend
on that (S4, docs/semantics.md).
"""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from itertools import combinations
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorEnv, VectorWrapper
from numpy.typing import NDArray

from surefoot.envs.adapters.pettingzoo_env import is_parallel_env
from surefoot.envs.protocol import flat_mask, new_slot
from surefoot.envs.protocol.spaces import EnvActions
from surefoot.envs.protocol.steps import env_step
from surefoot.verification.contract import random_actions

STEPS = 50


def broken_promises(env: gym.Env[Any, Any], seed: int) -> list[str]:
    """Observations that do not match the space's shapes and types, one message per kind of mismatch."""
    found: dict[str, None] = {}
    env.action_space.seed(seed)
    obs, info = env.reset(seed=seed)
    found.update(dict.fromkeys(_problems(obs, env.observation_space, "reset")))
    for _ in range(STEPS):
        step = env_step(env.step(_action(env, info)), 0, lambda _: "the env")
        found.update(dict.fromkeys(_problems(step.obs, env.observation_space, "step")))
        info = step.info
        if step.terminated or step.truncated:
            _, info = env.reset()
    return list(found)


def _action(env: gym.Env[Any, Any], info: Mapping[str, Any]) -> Any:
    mask = info.get("action_mask")
    if mask is None:
        return env.action_space.sample()
    actions = EnvActions(env.action_space)
    slot = new_slot(1, {}, actions.spec.num_choices)
    if slot.action_mask is not None:
        slot.action_mask[0] = flat_mask(mask, actions.spec, "the env")
    return actions.rows(random_actions(env.action_space.np_random, actions.spec, slot))[0]


def _problems(obs: Any, space: spaces.Space[Any], call: str, where: str = "observation") -> Iterator[str]:
    if isinstance(space, spaces.Dict):
        if not isinstance(obs, Mapping) or set(obs) != set(space):
            yield f"{call} returns a {where} whose keys are not exactly {', '.join(map(str, space))}"
            return
        for key, inner in space.items():
            yield from _problems(obs[key], inner, call, f"observation '{key}'")
    elif isinstance(space, spaces.Tuple):
        for number, inner in enumerate(space):
            yield from _problems(obs[number], inner, call, f"observation {number}")
    elif isinstance(space, spaces.Discrete):
        if not space.contains(obs):
            yield f"{call} returns {obs!r} as {where}, which is not in {space}"
    elif np.shape(obs) != space.shape:
        yield f"{call} returns a {where} of shape {np.shape(obs)}; its space has {space.shape}"
    elif not isinstance(obs, np.ndarray) or obs.dtype != space.dtype:
        given = obs.dtype if isinstance(obs, np.ndarray) else type(obs).__name__
        yield f"{call} returns a {where} of type {given}; its space has {space.dtype}"


class CopyingEnv(gym.Wrapper[Any, Any, Any, Any]):
    """A Gymnasium env that returns a copy of every observation."""

    def reset(self, **how: Any) -> tuple[Any, dict[str, Any]]:
        return deepcopy(self.env.reset(**how))

    def step(self, action: Any) -> Any:
        return deepcopy(self.env.step(action))


class CopyingVectorEnv(VectorWrapper):
    """The same for a vector env."""

    def reset(self, **how: Any) -> tuple[Any, dict[str, Any]]:
        return deepcopy(self.env.reset(**how))

    def step(self, actions: Any) -> Any:
        return deepcopy(self.env.step(actions))


class CopyingParallelEnv:
    """The same for a PettingZoo parallel env."""

    def __init__(self, env: Any) -> None:
        self._env = env

    def __getattr__(self, name: str) -> Any:
        return getattr(self._env, name)

    def reset(self, *args: Any, **how: Any) -> Any:
        return deepcopy(self._env.reset(*args, **how))

    def step(self, actions: Any) -> Any:
        return deepcopy(self._env.step(actions))


def copying(env: Any) -> Any:
    """An env of any kind, wrapped so that it returns copies of its observations."""
    if isinstance(env, VectorEnv):
        return CopyingVectorEnv(env)
    return CopyingParallelEnv(env) if is_parallel_env(env) else CopyingEnv(env)


def agents_in_one_array(observations: Mapping[Any, Any]) -> tuple[Any, Any] | None:
    """Two agents whose observations share one array, so that one sees the other's; None if all are separate."""
    for (one, seen), (other, given) in combinations(observations.items(), 2):
        if any(np.shares_memory(left, right) for left in _arrays(seen) for right in _arrays(given)):
            return one, other
    return None


def _arrays(obs: Any) -> list[NDArray[Any]]:
    if isinstance(obs, Mapping):
        return [array for inner in obs.values() for array in _arrays(inner)]
    if isinstance(obs, tuple | list):
        return [array for inner in obs for array in _arrays(inner)]
    return [obs] if isinstance(obs, np.ndarray) else []
