"""RepeatPrevious: one random symbol per step; the action must repeat the symbol shown `delay` steps ago.

The last element of the observation is the remaining fraction of the episode: the episode terminates, and a critic that
could not anticipate the end would have errors that drown out the rewards of single answers. It does not reveal the
symbols. This is the reference for cpp/envs/repeat_previous.cpp.
"""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from surefoot.envs.tasks.option_checks import whole_number

LEAST_SYMBOLS, MOST_SYMBOLS = 2, 32
LEAST_DELAY, MOST_DELAY = 1, 64
MOST_STEPS = 1024

Obs = NDArray[np.float32]


class RepeatPrevious(gym.Env[Obs, Any]):
    """Observes one of `symbols` as a one-hot vector, and the remaining fraction of `episode_steps`.

    The reward is 1 / (episode_steps - delay) for a correct answer and 0 for a wrong one, so that the return is the
    fraction of correct answers; the first `delay` steps have no correct answer and no reward.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 4}

    def __init__(
        self, symbols: int = 4, delay: int = 4, episode_steps: int = 64, render_mode: str | None = None
    ) -> None:
        self._num_symbols = whole_number("symbols", symbols, LEAST_SYMBOLS, MOST_SYMBOLS)
        self._delay = whole_number("delay", delay, LEAST_DELAY, MOST_DELAY)
        self._num_steps = whole_number("episode_steps", episode_steps, self._delay + 1, MOST_STEPS)
        self._reward = 1.0 / (self._num_steps - self._delay)
        self.render_mode = render_mode
        self.action_space = spaces.Discrete(self._num_symbols)
        self.observation_space = spaces.Box(0.0, 1.0, (self._num_symbols + 1,))
        self._shown, self._time = [0] * self._num_steps, 0
        self._answer: int | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Obs, dict[str, Any]]:
        """Draw the symbols of the episode and show the first one."""
        super().reset(seed=seed)
        drawn = self.np_random.random(self._num_steps) * self._num_symbols
        self._shown = [int(number) for number in drawn]
        self._time, self._answer = 0, None
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Obs, float, bool, bool, dict[str, Any]]:
        """Reward the answer and show the next symbol."""
        is_right = self._time >= self._delay and action == self._shown[self._time - self._delay]
        self._time, self._answer = self._time + 1, int(action)
        return self._observe(), self._reward if is_right else 0.0, self._time == self._num_steps, False, {}

    def render(self) -> Any:
        """The symbols so far and the last answer, which is not part of the state."""
        if self.render_mode is None:
            return None
        from surefoot.envs.tasks.drawing import draw_symbols

        asked = -1 if self._answer is None else max(-1, self._time - 1 - self._delay)
        return draw_symbols(self._shown[: self._time + 1], asked, self._answer)

    def save_state(self) -> dict[str, Any]:
        """The complete state, including future symbols."""
        return {"shown": self._shown, "time": self._time}

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from a saved state."""
        shown = [whole_number("shown", symbol, 0, self._num_symbols - 1) for symbol in state["shown"]]
        if len(shown) != self._num_steps:
            raise gym.error.Error(f"shown must have {self._num_steps} symbols, not {len(shown)}")
        self._shown, self._time = shown, whole_number("time", state["time"], 0, self._num_steps)

    def _observe(self) -> Obs:
        """The observation; after the last step it shows no symbol."""
        obs = np.zeros(self._num_symbols + 1, np.float32)
        if self._time < self._num_steps:
            obs[self._shown[self._time]] = 1.0
        obs[-1] = (self._num_steps - self._time) / self._num_steps
        return obs
