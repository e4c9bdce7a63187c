"""CartPole, Pendulum and Acrobot with positions but without velocities: tasks that need memory."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.classic_control import AcrobotEnv, CartPoleEnv, PendulumEnv
from gymnasium.spaces import Box
from numpy.typing import NDArray

from surefoot.envs.tasks.option_checks import physical_state

Obs = NDArray[np.float32]


class NoVelocity(gym.Env[Obs, Any]):
    """Mixin for classic-control envs: observes only some elements, and saves the complete state."""

    shown: list[int]
    remembered: tuple[str, ...]

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        whole = self.observation_space
        assert isinstance(whole, Box)
        self.observation_space = Box(whole.low[self.shown], whole.high[self.shown], dtype=np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Obs, dict[str, Any]]:
        """Start an episode."""
        obs, info = super().reset(seed=seed, options=options)
        return obs[self.shown], info

    def step(self, action: Any) -> tuple[Obs, Any, bool, bool, dict[str, Any]]:
        """One step; the observation has no velocities."""
        obs, reward, terminated, truncated, info = super().step(action)
        return obs[self.shown], reward, terminated, truncated, info

    def save_state(self) -> dict[str, Any]:
        """The complete state, including velocities."""
        return {name: getattr(self, name) for name in self.remembered}

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from a saved state."""
        loaded = {name: physical_state(name, state[name], getattr(self, name, None)) for name in self.remembered}
        for name, value in loaded.items():
            setattr(self, name, value)


class CartPoleNoVelocity(NoVelocity, CartPoleEnv):
    """Observes the position of the cart and the angle of the pole."""

    shown = [0, 2]
    remembered = ("state", "steps_beyond_terminated")


class PendulumNoVelocity(NoVelocity, PendulumEnv):
    """Observes the cosine and sine of the angle."""

    shown = [0, 1]
    remembered = ("state", "last_u")


class AcrobotNoVelocity(NoVelocity, AcrobotEnv):
    """Observes the cosine and sine of both angles."""

    shown = [0, 1, 2, 3]
    remembered = ("state",)
