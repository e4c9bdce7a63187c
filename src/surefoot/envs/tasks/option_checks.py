"""Checks the options and loaded states of tasks; raises Gymnasium's error, like other env constructors."""

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np

MOST_PHYSICAL = 1e4
"""The largest position, angle or velocity in a loaded state."""


def whole_number(name: str, value: Any, least: int, most: int) -> int:
    """The value as an int, if it is a whole number from `least` to `most`."""
    if _is_number(value) and least <= value <= most and value == int(value):
        return int(value)
    raise gym.error.Error(f"{name} must be a whole number from {least} to {most}, not {value!r}")


def number(name: str, value: Any, least: float, most: float) -> float:
    """The value as a float, if it is a number from `least` to `most`."""
    if _is_number(value) and least <= value <= most:
        return float(value)
    raise gym.error.Error(f"{name} must be a number from {least:g} to {most:g}, not {value!r}")


def share(name: str, value: Any) -> float:
    """The value as a float, if it is a number from 0 to 1."""
    return number(name, value, 0.0, 1.0)


def one_of(name: str, value: Any, names: Sequence[str]) -> str:
    """The value, if it is one of the names."""
    if isinstance(value, str) and value in names:
        return value
    raise gym.error.Error(f"{name} must be {', '.join(names[:-1])} or {names[-1]}, not {value!r}")


def physical_state(name: str, value: Any, current: Any) -> Any:
    """A loaded state of a classic-control env, if it is like the current one and no number is absurd.

    Gymnasium wraps angles in a loop that would not end with large ones.
    """
    if value is None:
        return None
    try:
        numbers = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        numbers = np.array(np.nan)
    if (current is not None and numbers.shape != np.shape(current)) or not (np.abs(numbers) <= MOST_PHYSICAL).all():
        raise gym.error.Error(f"{name} must be numbers of shape {np.shape(current)} and at most {MOST_PHYSICAL:g}")
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)
