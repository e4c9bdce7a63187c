"""MyEnv-v0 in Python: the readable twin of my_env.cpp, which gives the same numbers to the last bit."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

STEP, DRAG, FARTHEST = 0.1, 0.05, 2.0


class MyEnv(gym.Env[Any, Any]):
    """Computes in Python floats, which are C++ doubles, in the same order as the C++ does."""

    metrics = {"distance": "mean"}
    parameters = {"wind": 0.0}

    def __init__(self, force: float = 1.0) -> None:
        self.observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
        self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
        self._force, self._wind = force, 0.0
        self._position, self._velocity = 0.0, 0.0

    def set_parameters(self, values: dict[str, Any]) -> None:
        self._wind = values["wind"]

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._position, self._velocity = float(self.np_random.uniform(-1.0, 1.0)), 0.0
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        push = min(max(float(action[0]), -1.0), 1.0)
        self._velocity = self._velocity + STEP * (self._force * push + self._wind - DRAG * self._velocity)
        self._position = self._position + STEP * self._velocity
        distance = abs(self._position)
        return self._observe(), 1.0 - distance, distance > FARTHEST, False, {"distance": distance}

    def save_state(self) -> dict[str, Any]:
        return {"position": self._position, "velocity": self._velocity}

    def load_state(self, state: dict[str, Any]) -> None:
        self._position, self._velocity = state["position"], state["velocity"]

    def _observe(self) -> Any:
        return np.array([self._position, self._velocity])


TWINS = {"MyEnv-v0": MyEnv}
"""Which class stands for which id of the library."""
