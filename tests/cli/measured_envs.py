"""Envs with metrics and a parameter for whole runs, as `tests.cli.measured_envs:NAME`."""

from typing import Any

import gymnasium as gym
from gymnasium.envs.classic_control.cartpole import CartPoleEnv


class MeasuredCartPole(CartPoleEnv):
    """CartPole that reports how far it moved, whether it stayed up, and how many envs this process has made."""

    metrics = {"travel": "sum", "angle": "mean", "is_success": "last", "age": "last"}
    parameters = {"push": 10.0}
    made = 0

    def __init__(self) -> None:
        super().__init__()
        type(self).made += 1
        self._age, self._count = type(self).made, 0

    def set_parameters(self, values: dict[str, Any]) -> None:
        self.force_mag = values["push"]

    def reset(self, **kwargs: Any) -> Any:
        self._count = 0
        return super().reset(**kwargs)

    def step(self, action: Any) -> Any:
        obs, reward, terminated, truncated, info = super().step(action)
        self._count += 1
        travel, angle = abs(0.02 * float(obs[1])), abs(float(obs[2]))
        last = {"is_success": self._count >= 20, "age": self._age} if terminated else {}
        return obs, reward, terminated, truncated, info | {"travel": travel, "angle": angle} | last

    def save_state(self) -> dict[str, Any]:
        return {"state": self.state, "beyond": self.steps_beyond_terminated, "count": self._count}

    def load_state(self, state: dict[str, Any]) -> None:
        self.state, self.steps_beyond_terminated, self._count = state["state"], state["beyond"], state["count"]


gym.register("Measured-v0", MeasuredCartPole, max_episode_steps=500)
