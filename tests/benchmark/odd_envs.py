"""Envs as `tests.benchmark.odd_envs:NAME`."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
from gymnasium.envs.classic_control.cartpole import CartPoleEnv


class Fatal(CartPoleEnv):
    """Takes its process down when it is stepped."""

    def step(self, action: Any) -> Any:
        os._exit(7)


class Mute(CartPoleEnv):
    """Closes the pipe through which its process answers, and stays."""

    def __init__(self) -> None:
        os.closerange(3, 64)
        time.sleep(600)


class Deaf(CartPoleEnv):
    """Takes forever to make, and does not mind an interrupt."""

    def __init__(self, file: str) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        Path(file).touch()
        time.sleep(600)


gym.register("Fatal-v0", Fatal)
gym.register("Mute-v0", Mute)
gym.register("Deaf-v0", Deaf)
