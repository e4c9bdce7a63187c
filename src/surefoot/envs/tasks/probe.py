"""Probe: a task that tests every kind of policy with an engine.

Its observation has keys of several sizes, the kind of action is an option, discrete actions do not start at 0 and
some are masked. The best action is that of the largest cue (in a box, the point of the first two cues): low rewards
burn more fuel, and without fuel the episode ends. This is the reference for cpp/envs/probe.cpp.
"""

import math
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from surefoot.envs.tasks.option_checks import physical_state

KINDS: dict[str, spaces.Space[Any]] = {
    "discrete": spaces.Discrete(5, start=3),
    "multi_discrete": spaces.MultiDiscrete([3, 2], start=[1, -2]),
    "multi_binary": spaces.MultiBinary(5),
    "box": spaces.Box(np.array([-1.0, -2.0], np.float32), np.array([1.0, 3.0], np.float32)),
}
ELEMENTS = {"discrete": [range(5)], "multi_discrete": [range(3), range(3, 5)]}
"""Number of choices per action element."""
NUM_CUES = 5
LEAST_FUEL, MOST_FUEL = 4.0, 28.0
SLOPES = (-1.0, -0.5, 0.0, 0.5, 1.0)
OPEN_FROM = -0.25

Obs = dict[str, NDArray[np.float32]]


def turned(number: float) -> float:
    """The next element of a chaotic sequence in [-1, 1]: it looks random but follows from the observation."""
    return 1.0 - 2.0 * (number * number)


class Probe(gym.Env[Any, Any]):
    """`action` is the kind of action: discrete, multi_discrete, multi_binary or box.

    With less fuel than `forbids_below`, masks forbid every action: a deliberate fault that must be detected.
    """

    metadata = {"render_modes": []}

    def __init__(
        self, action: str = "discrete", forbids_below: float = -math.inf, render_mode: str | None = None
    ) -> None:
        if action not in KINDS:
            raise gym.error.Error(f"action must be one of {', '.join(KINDS)}, not '{action}'")
        self.render_mode = render_mode
        self._kind, self._forbids_below = action, forbids_below
        self.action_space = KINDS[action]
        self.observation_space = spaces.Dict(
            {
                "cues": spaces.Box(-1.0, 1.0, (NUM_CUES,)),
                "fuel": spaces.Box(-2.0, MOST_FUEL, (1,)),
                "wheel": spaces.Box(-1.0, 1.0, (2,)),
            }
        )
        self._cues, self._wheel, self._fuel = [0.0] * NUM_CUES, [0.0, 0.0], 0.0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Obs, dict[str, Any]]:
        """Start an episode with a random amount of fuel."""
        super().reset(seed=seed)
        self._cues = self.np_random.uniform(-1.0, 1.0, NUM_CUES).tolist()
        self._wheel = self.np_random.uniform(-1.0, 1.0, 2).tolist()
        self._fuel = float(self.np_random.uniform(LEAST_FUEL, MOST_FUEL))
        return self._observe(), self._info()

    def step(self, action: Any) -> tuple[Obs, float, bool, bool, dict[str, Any]]:
        """Compute the reward, burn fuel, and move on to the next cues."""
        reward = self._box_reward(action) if self._kind == "box" else self._choice_reward(action)
        self._fuel -= 1.0 if reward >= 0.0 else 1.5
        self._cues, self._wheel = [turned(cue) for cue in self._cues], [turned(one) for one in self._wheel]
        return self._observe(), reward, self._fuel <= 0.0, False, self._info()

    def save_state(self) -> dict[str, Any]:
        """The complete state."""
        return {"cues": self._cues, "wheel": self._wheel, "fuel": self._fuel}

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from a saved state."""
        loaded = {name: physical_state(name, value, self.save_state()[name]) for name, value in state.items()}
        self._cues, self._wheel, self._fuel = list(loaded["cues"]), list(loaded["wheel"]), float(loaded["fuel"])

    def _observe(self) -> Obs:
        leaves = {"cues": self._cues, "fuel": [self._fuel], "wheel": self._wheel}
        return {key: np.array(leaf, np.float32) for key, leaf in leaves.items()}

    def _info(self) -> dict[str, Any]:
        return {} if self._kind == "box" else {"action_mask": np.array(self._allowed(), np.int8)}

    def _allowed(self) -> list[bool]:
        """The choices that the wheel allows; if it allows none for an element, the nearest one."""
        if self._fuel < self._forbids_below:
            return [False] * NUM_CUES
        openness = [self._wheel[0] + self._wheel[1] * slope for slope in SLOPES]
        allowed = [how_open >= OPEN_FROM for how_open in openness]
        for choices in ELEMENTS.get(self._kind, []):
            allowed[max(choices, key=openness.__getitem__)] = True
        return allowed

    def _choice_reward(self, action: Any) -> float:
        """The cues of the chosen actions; forbidden actions are penalized."""
        allowed, reward = self._allowed(), 0.0
        for choice in self._chosen(action):
            reward += self._cues[choice] if allowed[choice] else -1.0
        return reward

    def _chosen(self, action: Any) -> Iterator[int]:
        if self._kind == "discrete":
            yield int(action) - 3
        elif self._kind == "multi_discrete":
            yield int(action[0]) - 1
            yield 3 + int(action[1]) + 2
        else:
            yield from (choice for choice in range(NUM_CUES) if action[choice])

    def _box_reward(self, action: NDArray[np.float32]) -> float:
        """Higher the closer the action is to the first two cues."""
        misses = [float(action[i]) - self._cues[i] for i in range(2)]
        return 1.0 - (misses[0] * misses[0] + misses[1] * misses[1])
