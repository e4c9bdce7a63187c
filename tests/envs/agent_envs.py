"""Envs with an array that belongs to the agent: `tests.envs.agent_envs:Weighted-v0`.

Without PyTorch, which workers would import.
"""

from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium import spaces


class Weighted(gym.Env[Any, Any]):
    """Pays the sum of its weights in each of three steps."""

    metadata: ClassVar = {"render_modes": ["rgb_array"], "render_fps": 10}
    observation_space = spaces.Box(-1.0, 1.0, (2,))
    action_space = spaces.Discrete(2)
    parameters: ClassVar = {"wind": 0.0, "weights": np.zeros(4)}
    agent_parameters = ("weights",)

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode, self.weights, self._count = render_mode, np.zeros(4), 0

    def set_parameters(self, values: dict[str, Any]) -> None:
        self.weights = values.get("weights", self.weights)
        if self.weights[0] < 0:
            raise ValueError("the first weight is negative")

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._count = 0
        return self.np_random.uniform(-1, 1, 2).astype(np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._count += 1
        obs = self.np_random.uniform(-1, 1, 2).astype(np.float32)
        return obs, float(self.weights.sum()), self._count == 3, False, {}

    def render(self) -> Any:
        return np.full((64, 64, 3), int(self.weights.sum()), np.uint8)

    def save_state(self) -> dict[str, Any]:
        return {"count": self._count}

    def load_state(self, state: dict[str, Any]) -> None:
        self._count = state["count"]


gym.register("Weighted-v0", Weighted)
