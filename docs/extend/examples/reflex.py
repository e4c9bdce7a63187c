"""Reflex-v0 in Python: the readable twin of reflex.cpp."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from surefoot.envs.network import Network

STEP, DRAG, SUBSTEPS = 0.05, 0.5, 4
SIZES = (2, 8, 1)


class Reflex(gym.Env[Any, Any]):
    """The action is a target; a network inside the env makes forces of it, in every substep."""

    parameters = {"reflex": np.zeros(33)}
    agent_parameters = ["reflex"]

    def __init__(self) -> None:
        self.observation_space = spaces.Box(-np.inf, np.inf, (3,), np.float64)
        self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
        self._network = Network(SIZES)
        self._position, self._velocity, self._goal = 0.0, 0.0, 0.0

    def set_parameters(self, values: dict[str, Any]) -> None:
        self._network.set(values["reflex"])

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._position = float(self.np_random.uniform(-1.0, 1.0))
        self._goal = float(self.np_random.uniform(-1.0, 1.0))
        self._velocity = 0.0
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        target = min(max(float(action[0]), -1.0), 1.0)
        for _ in range(SUBSTEPS):
            force = float(self._network.run([target - self._position, self._velocity])[0])
            self._velocity = self._velocity + STEP * (force - DRAG * self._velocity)
            self._position = self._position + STEP * self._velocity
        miss = self._position - self._goal
        return self._observe(), -miss * miss, False, False, {}

    def save_state(self) -> dict[str, Any]:
        return {"position": self._position, "velocity": self._velocity, "goal": self._goal}

    def load_state(self, state: dict[str, Any]) -> None:
        self._position, self._velocity = state["position"], state["velocity"]
        self._goal = state["goal"]

    def _observe(self) -> Any:
        return np.array([self._position, self._velocity, self._goal])


TWINS = {"Reflex-v0": Reflex}
