"""A small task with action masks, in the form that either side reads them: `infos["action_mask"]`, `action_masks()`."""

from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

CHOICES, EPISODE = 16, 100


class MaskedChoice(gym.Env[NDArray[np.float32], np.int64]):
    """Of the choices that are allowed, take the one with the largest entry; one in two is allowed."""

    observation_space = gym.spaces.Box(-1, 1, (CHOICES,), np.float32)
    action_space = gym.spaces.Discrete(CHOICES)

    def __init__(self) -> None:
        self._left = 0
        self._obs = np.zeros(CHOICES, np.float32)
        self._mask = np.ones(CHOICES, dtype=bool)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Start 100 steps."""
        super().reset(seed=seed)
        self._left = EPISODE
        self._draw()
        return self._obs, {"action_mask": self._mask}

    def step(self, action: np.int64) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Reward the best choice; one that is not allowed is a mistake of whoever samples."""
        if not self._mask[action]:
            raise ValueError(f"choice {action} is masked")
        reward = float(self._obs[action] == self._obs[self._mask].max())
        self._left -= 1
        self._draw()
        return self._obs, reward, self._left == 0, False, {"action_mask": self._mask}

    def action_masks(self) -> NDArray[np.bool_]:
        """The mask of the next step, as sb3-contrib asks for it."""
        return self._mask

    def _draw(self) -> None:
        self._obs = self.np_random.uniform(-1, 1, CHOICES).astype(np.float32)
        self._mask = self.np_random.random(CHOICES) < 0.5
        self._mask[0] = True


# Gymnasium's way: an id `module:name` imports the module, which registers the name.
gym.register("MaskedChoice-v0", f"{__name__}:{MaskedChoice.__name__}")
