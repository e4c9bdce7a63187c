"""Checks the options of Surefoot's tasks; raises Gymnasium's error, like other env constructors."""

from typing import Any

import gymnasium as gym
import numpy as np


def whole_number(name: str, value: Any, least: int, most: int) -> int:
    """The value as an int, if it is a whole number from `least` to `most`."""
    if _is_number(value) and least <= value <= most and value == int(value):
        return int(value)
    raise gym.error.Error(f"{name} must be a whole number from {least} to {most}, not {value!r}")


def share(name: str, value: Any) -> float:
    """The value as a float, if it is a number from 0 to 1."""
    if _is_number(value) and 0 <= value <= 1:
        return float(value)
    raise gym.error.Error(f"{name} must be a number from 0 to 1, not {value!r}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)
