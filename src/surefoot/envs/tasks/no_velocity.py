"""CartPole, Pendulum and Acrobot that show where things are but not how fast they move: tasks that need memory."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.classic_control import AcrobotEnv, CartPoleEnv, PendulumEnv
from gymnasium.spaces import Box
from numpy.typing import NDArray

Obs = NDArray[np.float32]


class NoVelocity(gym.Env[Obs, Any]):
    """Put before a classic-control env: shows some of its observation, and says its whole state."""

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
        """One step, of which the velocities are left out."""
        obs, reward, terminated, truncated, info = super().step(action)
        return obs[self.shown], reward, terminated, truncated, info

    def save_state(self) -> dict[str, Any]:
        """The state in full, velocities too."""
        return {name: getattr(self, name) for name in self.remembered}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from there."""
        for name in self.remembered:
            setattr(self, name, state[name])


class CartPoleNoVelocity(NoVelocity, CartPoleEnv):
    """Shows the cart's position and the pole's angle."""

    shown = [0, 2]
    remembered = ("state", "steps_beyond_terminated")


class PendulumNoVelocity(NoVelocity, PendulumEnv):
    """Shows the cosine and the sine of the angle."""

    shown = [0, 1]
    remembered = ("state", "last_u")


class AcrobotNoVelocity(NoVelocity, AcrobotEnv):
    """Shows the cosine and the sine of both angles."""

    shown = [0, 1, 2, 3]
    remembered = ("state",)
