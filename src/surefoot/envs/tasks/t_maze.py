"""TMaze: a cue at the start of a corridor tells which arm to take at its end, where the cue is no longer visible.

After Bakker (2002), "Reinforcement Learning with Long Short-Term Memory", with one change: the agent advances one cell
per step regardless of its action, and only the action at the junction matters. If it had to walk, early episodes would
be random walks, and success would depend on exploration as much as on memory; here the cue is always exactly `length`
steps back. This is the reference for cpp/envs/t_maze.cpp.
"""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from surefoot.envs.tasks.option_checks import share, whole_number

FORWARD, UP, DOWN = range(3)
LEAST_LENGTH, MOST_LENGTH = 10, 100

Obs = NDArray[np.float32]


class TMaze(gym.Env[Obs, Any]):
    """Observes `[cue, is at the junction]`; the cue (1: up, -1: down) is visible only at the start.

    The reward is 1 for the correct arm and 0 otherwise, so that the mean return is the success rate; turning in the
    corridor costs `bump_penalty`, which is 0 by default.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 15}

    def __init__(self, length: int = 50, bump_penalty: float = 0.0, render_mode: str | None = None) -> None:
        self._length = whole_number("length", length, LEAST_LENGTH, MOST_LENGTH)
        self._bump_penalty = share("bump_penalty", bump_penalty)
        self.render_mode = render_mode
        self.action_space = spaces.Discrete(3)
        self.observation_space = spaces.Box(np.array([-1.0, 0.0], np.float32), np.array([1.0, 1.0], np.float32))
        self._cue, self._position, self._arm = 1.0, 0, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Obs, dict[str, Any]]:
        """Return to the start and show the cue."""
        super().reset(seed=seed)
        self._cue = 1.0 if self.np_random.random() < 0.5 else -1.0
        self._position, self._arm = 0, 0
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Obs, float, bool, bool, dict[str, Any]]:
        """Advance in the corridor; at the junction, the action takes an arm (or hits the wall) and ends the episode."""
        if self._position == self._length:
            self._arm = {UP: 1, DOWN: -1}.get(int(action), 0)
            is_right = action == (UP if self._cue > 0.0 else DOWN)
            return self._observe(), 1.0 if is_right else 0.0, True, False, {}
        self._position += 1
        return self._observe(), 0.0 if action == FORWARD else 0.0 - self._bump_penalty, False, False, {}

    def render(self) -> Any:
        """The maze with cue and position; the arm that was taken is shown, but not part of the state."""
        if self.render_mode is None:
            return None
        from surefoot.envs.tasks.drawing import draw_maze

        return draw_maze(self._length, self._position, self._cue > 0.0, self._arm)

    def save_state(self) -> dict[str, Any]:
        """The complete state."""
        return {"cue": self._cue, "position": self._position}

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from a saved state."""
        if state["cue"] not in (1.0, -1.0):
            raise gym.error.Error(f"cue must be 1 or -1, not {state['cue']!r}")
        self._position = whole_number("position", state["position"], 0, self._length)
        self._cue = float(state["cue"])

    def _observe(self) -> Obs:
        cue = self._cue if self._position == 0 else 0.0
        return np.array([cue, self._position == self._length], np.float32)
