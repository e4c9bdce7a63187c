"""Small envs that draw themselves, or fail to."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces


class Lamp(gym.Env[Any, Any]):
    """A Dict observation, an action mask and tiny pictures, in which the first pixel tells the step."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 60}

    def __init__(self, render_mode: str | None = None, size: int = 9) -> None:
        self.render_mode, self._size = render_mode, size
        self.observation_space = spaces.Dict(
            {"light": spaces.Box(-1.0, 1.0, (2,)), "picture": spaces.Box(0, 255, (12, 12, 1), np.uint8)}
        )
        self.action_space = spaces.Discrete(3)
        self._time, self._light = 0, np.zeros(2, np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self._time, self._last = 0, int(self.np_random.integers(3, 8))
        return self._observe(), self._info()

    def step(self, action: Any) -> Any:
        assert self._info()["action_mask"][action], "a forbidden action"
        self._time += 1
        reward = float(self._light[0]) * (int(action) - 1)
        return self._observe(), reward, self._time == self._last, False, self._info()

    def render(self) -> Any:
        picture = np.full((self._size, self._size, 3), 80, np.uint8)
        picture[0, 0] = self._time
        return picture

    def _observe(self) -> Any:
        self._light = self.np_random.uniform(-1, 1, 2).astype(np.float32)
        return {"light": self._light, "picture": np.full((12, 12, 1), self._time, np.uint8)}

    def _info(self) -> dict[str, Any]:
        return {"action_mask": np.array([1, self._time % 2, 1], np.int8)}


class Blind(Lamp):
    """Takes a render mode and ignores it."""

    metadata = {"render_modes": ["ansi"]}

    def __init__(self, render_mode: str | None = None) -> None:
        super().__init__()


class Broken(Lamp):
    """Draws nothing that can be shown."""

    drawing: Any = None

    def render(self) -> Any:
        if isinstance(self.drawing, BaseException):
            raise self.drawing
        return self.drawing
