"""Envs as users write them: sound ones, and one for every mistake that verify looks for."""

import sys
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorWrapper

from tests.envs.teams import TeamEnv

LIMIT = 9


class WalkEnv(gym.Env[Any, Any]):
    """Wander on a line from a random place; falls off beyond 2, and is cut off after LIMIT steps."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self._place, self._step = self._start(), 0
        return self._observe(), {}

    def step(self, action: Any) -> Any:
        self._place += (0.5 if action else -0.5) + self.np_random.normal(0, 0.1)
        self._step += 1
        return self._observe(), -abs(self._place), abs(self._place) > 2, self._step == LIMIT, {}

    def save_state(self) -> dict[str, Any]:
        return {"place": self._place, "step": self._step}

    def load_state(self, state: dict[str, Any]) -> None:
        self._place, self._step = state["place"], state["step"]

    def _start(self) -> float:
        return float(self.np_random.uniform(-1, 1))

    def _observe(self) -> Any:
        return np.array([self._place, self._step / LIMIT], np.float32)


class ReusingEnv(WalkEnv):
    """Gives the same array every time: allowed."""

    def __init__(self) -> None:
        self._shown = np.zeros(2, np.float32)

    def _observe(self) -> Any:
        self._shown[:] = super()._observe()
        return self._shown


class UnseededEnv(WalkEnv):
    """Takes its luck from elsewhere."""

    def _start(self) -> float:
        return float(np.random.default_rng().uniform(-1, 1))


class DeafEnv(WalkEnv):
    """Always begins at the same place and has luck that no seed changes."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return super().reset(seed=None if seed is None else 7)


class HomesickEnv(WalkEnv):
    """Is another one in another process."""

    def _start(self) -> float:
        return super()._start() + (0.0 if "pytest" in sys.modules else 0.1)


class SelfResettingEnv(WalkEnv):
    """Resets itself in the step that ends, as old vector envs did."""

    def step(self, action: Any) -> Any:
        obs, reward, terminated, truncated, info = super().step(action)
        if terminated or truncated:
            obs, _ = self.reset()
        return obs, reward, terminated, truncated, info

    def _start(self) -> float:
        return 0.25


class DoubleEnv(WalkEnv):
    """Gives float64 where it promises float32."""

    def _observe(self) -> Any:
        return super()._observe().astype(np.float64)


class CrookedEnv(WalkEnv):
    """Gives one number more in steps than in resets."""

    def step(self, action: Any) -> Any:
        obs, *rest = super().step(action)
        return np.append(obs, np.float32(0)), *rest


class ForgetfulEnv(WalkEnv):
    """Saves only half of its state."""

    def load_state(self, state: dict[str, Any]) -> None:
        self._place, self._step = state["place"], 0


class UnsavableEnv(gym.Wrapper[Any, Any, Any, Any]):
    """A wrapper that nobody knows the state of."""

    def __init__(self) -> None:
        super().__init__(WalkEnv())


class CrowdedTeam(TeamEnv):
    """Writes what its agents see into one array for all of them."""

    def _observations(self) -> dict[str, Any]:
        seen, crowded = super()._observations(), np.zeros(6, np.float32)
        for agent, obs in seen.items():
            crowded[:] = obs
            seen[agent] = crowded
        return seen


class WithoutFinalObs(VectorWrapper):
    """Loses the last observations of episodes."""

    def step(self, actions: Any) -> Any:
        *rest, infos = self.env.step(actions)
        return *rest, {name: value for name, value in infos.items() if "final" not in name}


def vector_env(loses_final_obs: bool) -> Any:
    """A vector env that resets in the same step."""
    envs = SyncVectorEnv([WalkEnv] * 3, autoreset_mode=AutoresetMode.SAME_STEP)
    return WithoutFinalObs(envs) if loses_final_obs else envs
