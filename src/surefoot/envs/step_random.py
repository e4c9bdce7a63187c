"""Random numbers inside a step, the same as in C++ (`surefoot/step_random.hpp`), for the twins of native envs."""

import math
from typing import Any

import numpy as np

from surefoot.philox import philox


class StepRandom:
    """A number is a function of a key that `reset` draws, the step, and its index in the step (S13, docs/semantics.md).

    So the state is the key and the step, and a step that draws more numbers does not change later ones.
    """

    def __init__(self, random: np.random.Generator) -> None:
        """For `reset`, with the env's `np_random`: draws the key of an episode."""
        key = int(random.integers(0, 2**64, dtype=np.uint64))
        self._key, self._step, self._drawn = (key & 0xFFFFFFFF, key >> 32), 0, 0

    def next_step(self) -> None:
        """To be called once per step, before its first number."""
        self._step, self._drawn = self._step + 1, 0

    def uniform(self, low: float = 0.0, high: float = 1.0) -> float:
        """A number in [low, high) with 53 random bits."""
        upper, lower = self._word() >> 5, self._word() >> 6
        return low + (high - low) * ((upper << 26 | lower) * 2.0**-53)

    def normal(self) -> float:
        """Standard normal (Box and Muller 1958)."""
        length = math.sqrt(-2.0 * math.log(1.0 - self.uniform()))
        return length * math.cos(2.0 * math.pi * self.uniform())

    def state(self) -> dict[str, Any]:
        """For `save_state`."""
        return {"key": list(self._key), "step": self._step}

    def load_state(self, state: dict[str, Any]) -> None:
        """For `load_state`."""
        self._key, self._step, self._drawn = (state["key"][0], state["key"][1]), state["step"], 0

    def _word(self) -> int:
        word = int(philox((self._drawn // 4, self._step, 0, 0), self._key)[self._drawn % 4])
        self._drawn += 1
        return word
