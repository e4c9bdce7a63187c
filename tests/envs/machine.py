"""An env of which the actions have several parts."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

PARTS = {
    "aim": spaces.Box(np.array([[-2.0, 0.0]]), np.array([[1.0, 5.0]]), dtype=np.float64),
    "buttons": spaces.MultiBinary(2),
    "gear": spaces.Discrete(3, start=-1),
    "levers": spaces.MultiDiscrete([2, 4], start=[5, 0]),
}
"""In the order of their keys, as Gymnasium sorts those of a Dict."""
SPACES = {"dict": spaces.Dict(PARTS), "tuple": spaces.Tuple(tuple(PARTS.values()))}


class Machine(gym.Env[Any, Any]):
    """Refuses actions outside of its space or its mask; rewards those that follow what it shows."""

    observation_space = spaces.Box(-1, 1, (4,))

    def __init__(self, form: str = "dict", has_masks: bool = False) -> None:
        self.action_space, self._has_masks = SPACES[form], has_masks

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self._count = 0
        return self._next(), self._info()

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(action), action
        aim, buttons, gear, levers = action.values() if isinstance(action, dict) else action
        if self._has_masks:
            assert gear + 1 != self._count % 3
            assert not buttons[self._count % 2]
        self._count += 1
        reward = -float(np.abs(aim).sum() + abs(gear - np.sign(self._shown[0])) + np.sum(levers)) + float(buttons.sum())
        return self._next(), reward, False, self._count == 7, self._info()

    def save_state(self) -> dict[str, Any]:
        return {"count": self._count, "shown": self._shown}

    def load_state(self, state: dict[str, Any]) -> None:
        self._count, self._shown = state["count"], state["shown"]

    def _next(self) -> Any:
        self._shown = self.np_random.uniform(-1, 1, 4).astype(np.float32)
        return self._shown.copy()

    def _info(self) -> dict[str, Any]:
        masks = {"gear": np.arange(3) != self._count % 3, "buttons": np.arange(2) != self._count % 2}
        whole = masks if isinstance(self.action_space, spaces.Dict) else (None, masks["buttons"], masks["gear"], None)
        return {"action_mask": whole} if self._has_masks else {}
