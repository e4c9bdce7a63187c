"""Converts the results of `step` to one form: old Gym tuples, int flags, array rewards."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from surefoot.data.zeros_and_ones import zeros_and_ones
from surefoot.errors import EnvError
from surefoot.output.quoted import quoted

Describe = Callable[[int], str]
"""Describes a row for error messages; only called for an error."""


_FLAGS = (bool, np.bool_)
_NUMBERS = (float, int, np.floating)


class EnvStep(NamedTuple):
    """Gymnasium's five values, with plain types."""

    obs: Any
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]


def env_step(result: Any, row: int, who: Describe) -> EnvStep:
    """Accept Gymnasium's five values, or old Gym's four if they are unambiguous."""
    if type(result) is tuple and len(result) == 5:  # the common case needs no further check
        _, reward, terminated, truncated, info = result
        if type(reward) is float and type(terminated) is type(truncated) is bool and type(info) is dict:
            return EnvStep._make(result)
    if not isinstance(result, tuple) or len(result) not in (4, 5):
        size = len(result) if isinstance(result, tuple) else type(result).__name__
        raise EnvError(f"{who(row)}: step must return (obs, reward, terminated, truncated, info), got {size}")
    info = plain_info(result[-1], "step", who(row))
    if len(result) == 5:
        obs, reward, terminated, truncated, _ = result
        return EnvStep(obs, one_number(reward, row, who), _flag(terminated, row, who), _flag(truncated, row, who), info)
    obs, reward, done, _ = result
    # Old Gym marks a time limit in the info; without that mark, done means terminated.
    is_time_limit = _flag(info.get("TimeLimit.truncated", False), row, who)
    is_done = _flag(done, row, who)
    return EnvStep(obs, one_number(reward, row, who), is_done and not is_time_limit, is_done and is_time_limit, info)


def plain_info(info: Any, call: str, who: str) -> dict[str, Any]:
    """The info as a plain dict: nobody has to know what the methods of another class do."""
    if type(info) is dict:
        return info
    if not isinstance(info, Mapping):
        raise EnvError(f"{who}: {call} must return its info as a dict, got {quoted(info)}")
    try:
        return dict(info)
    except Exception as error:  # of the methods of its class
        raise EnvError(f"{who}: {call} returned an info that cannot be read ({type(error).__name__})") from error


def _flag(value: Any, row: int, who: Describe) -> bool:
    if isinstance(value, _FLAGS):
        return bool(value)
    flags = zeros_and_ones(value, kinds="iu")
    if flags is None or flags.size != 1:
        raise EnvError(f"{who(row)}: terminated and truncated must be booleans, got {quoted(value)}")
    return bool(flags.item())


def one_number(value: Any, row: int, who: Describe, what: str = "the reward") -> float:
    """A number, also from an array with one element."""
    try:
        if isinstance(value, _NUMBERS):
            return float(value)
        array = np.asarray(value)
        if array.size == 1 and array.dtype.kind in "fiub":
            return float(array.item())
    except Exception:  # integers without bound, lists of uneven length, objects whose conversion fails
        pass
    raise EnvError(f"{who(row)}: {what} must be one number, got {quoted(value)}")
