"""Envs that make a run ill in one way each."""

import time
from typing import Any

import gymnasium as gym
import numpy as np

OBS = gym.spaces.Box(-np.inf, np.inf, (3,), np.float32)


class NoiseEnv(gym.Env[Any, Any]):
    """Rewards that nothing in the observation tells: whatever a critic finds in it is wrong."""

    observation_space, action_space = OBS, gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._step = 0
        return self._obs(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._step += 1
        return self._obs(), self._reward(action), False, self._step == 20, {}

    def _obs(self) -> Any:
        return self.np_random.normal(size=3).astype(np.float32)

    def _reward(self, action: Any) -> float:
        return float(self.np_random.normal())


class StillEnv(NoiseEnv):
    """The smaller the action, the better: noise does nothing but harm."""

    action_space = gym.spaces.Box(-1, 1, (1,), np.float32)

    def _reward(self, action: Any) -> float:
        return -float(np.square(action).sum())


class AlternatingEnv(NoiseEnv):
    """Pays for an action that differs from the last one, which it does not show: only noise finds it."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self._last = 0
        return super().reset(seed=seed, options=options)

    def _obs(self) -> Any:
        return np.zeros(3, np.float32)

    def _reward(self, action: Any) -> float:
        differs, self._last = int(action) != self._last, int(action)
        return float(differs)


class TiringEnv(NoiseEnv):
    """Slow from some step on."""

    steps, fresh_for = 0, 0

    def _reward(self, action: Any) -> float:
        TiringEnv.steps += 1
        if TiringEnv.steps > self.fresh_for:
            time.sleep(0.005)
        return 0.0


class EndlessEnv(NoiseEnv):
    """No episode ever ends, and observations leave their space."""

    observation_space = gym.spaces.Box(-1, 1, (3,), np.float32)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return self._obs(), 0.0, False, False, {}


class BrokenEnv(NoiseEnv):
    """One reward is NaN."""

    steps, bad_step = 0, 0

    def _reward(self, action: Any) -> float:
        BrokenEnv.steps += 1
        return np.nan if BrokenEnv.steps == self.bad_step else 0.0
