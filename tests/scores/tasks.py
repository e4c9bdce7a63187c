"""Small tasks that can only be solved if one feature works, each learned in seconds."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

HORIZON = 16


class Task(gym.Env[Any, Any]):
    """Sixteen questions, each answered with one action; a right answer is worth 1."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.asked = 0
        return self.ask(), self.info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        reward = self.mark(action)
        self.asked += 1
        return self.ask(), reward, self.asked == HORIZON, False, self.info()

    def ask(self) -> Any:
        raise NotImplementedError

    def mark(self, action: Any) -> float:
        raise NotImplementedError

    def info(self) -> dict[str, Any]:
        return {}


class AddKeys(Task):
    """Dict observation: the answer is the sum of two keys, modulo 3. Without either key, a third is right."""

    observation_space = spaces.Dict(
        {"first": spaces.Discrete(3), "nested": spaces.Dict({"second": spaces.Discrete(3)})}
    )
    action_space = spaces.Discrete(3)

    def ask(self) -> Any:
        self.numbers = self.np_random.integers(3, size=2)
        return {"first": int(self.numbers[0]), "nested": {"second": int(self.numbers[1])}}

    def mark(self, action: Any) -> float:
        return float(action == self.numbers.sum() % 3)


class BestAllowed(Task):
    """Action mask: the favorite is shown, but often forbidden; then the next higher allowed number is right.

    The mask is not in the observation: the answer under a mask depends on the ranking of the logits. A forbidden action
    raises.
    """

    observation_space = spaces.Discrete(6)
    action_space = spaces.Discrete(6)

    def ask(self) -> Any:
        self.favorite = int(self.np_random.integers(6))
        self.mask = self.np_random.random(6) < 0.5
        self.mask[self.np_random.integers(6)] = True
        return self.favorite

    def mark(self, action: Any) -> float:
        if not self.mask[action]:
            raise ValueError(f"action {action} is forbidden")
        ranked = [(self.favorite + offset) % 6 for offset in range(6)]
        return float(action == next(choice for choice in ranked if self.mask[choice]))

    def info(self) -> dict[str, Any]:
        return {"action_mask": self.mask.copy()}


class TwoDials(Task):
    """MultiDiscrete: each dial set right is worth half. With one dial dead, 0.5 + 0.5/4 is the most."""

    observation_space = spaces.MultiDiscrete([3, 4])
    action_space = spaces.MultiDiscrete([3, 4])

    def ask(self) -> Any:
        self.targets = np.array([self.np_random.integers(3), self.np_random.integers(4)])
        return self.targets.copy()

    def mark(self, action: Any) -> float:
        return float(np.mean(action == self.targets))


class WhichQuadrant(Task):
    """Image: say in which quadrant the bright square is. Blind, a quarter is right."""

    observation_space = spaces.Box(0, 255, (16, 16, 1), np.uint8)
    action_space = spaces.Discrete(4)

    def ask(self) -> Any:
        self.quadrant = int(self.np_random.integers(4))
        image = self.np_random.integers(0, 60, size=(16, 16, 1), dtype=np.uint8)
        row, column = self.np_random.integers(0, 6, size=2) + 8 * np.array(divmod(self.quadrant, 2))
        image[row : row + 3, column : column + 3] = 255
        return image

    def mark(self, action: Any) -> float:
        return float(action == self.quadrant)


class Endless(gym.Env[Any, Any]):
    """Reward 1 for ever, cut off by a time limit of 8: the value is 1 / (1 - gamma), not the 8 steps' worth."""

    observation_space = spaces.Box(-1, 1, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.count = 0
        return np.ones(1, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.count += 1
        return np.ones(1, np.float32), 1.0, False, self.count == 8, {}
