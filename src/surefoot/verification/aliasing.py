"""Envs that return the same array at every step: a rollout must not depend on it (S4, docs/semantics.md)."""

from collections.abc import Mapping
from copy import deepcopy
from itertools import combinations
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import VectorEnv, VectorWrapper
from numpy.typing import NDArray

from surefoot.envs.adapters.pettingzoo_env import is_parallel_env


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
        return [array for part in obs.values() for array in _arrays(part)]
    if isinstance(obs, tuple | list):
        return [array for part in obs for array in _arrays(part)]
    return [obs] if isinstance(obs, np.ndarray) else []
