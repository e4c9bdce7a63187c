"""Envs as `tests.benchmark.odd_envs:NAME`."""

import os
from typing import Any

import gymnasium as gym
from gymnasium.envs.classic_control.cartpole import CartPoleEnv


class Fatal(CartPoleEnv):
    """Takes its process down when it is stepped."""

    def step(self, action: Any) -> Any:
        os._exit(7)


gym.register("Fatal-v0", Fatal)
