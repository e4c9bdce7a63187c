"""Converts the results of `step` to one form: old Gym tuples, int flags, array rewards; all values are checked."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from surefoot.data.specs import dead_rows
from surefoot.data.tree import tree_items
from surefoot.data.zeros_and_ones import zeros_and_ones
from surefoot.envs.protocol import ALL_ROWS, ArrayTree, Flags, Slot, VecEnv
from surefoot.errors import EnvError, NonFiniteError
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


def check_step(env: VecEnv, slot: Slot, step: int, rows: slice = ALL_ROWS) -> None:
    """Check a step for non-finite values and invalid masks; `rows` are the rows that stepped.

    The policy acts next, so defaults of PyTorch that an env has changed are restored.
    """
    from surefoot.machine.torch_defaults import restore_defaults  # not above: worker processes do without PyTorch

    restore_defaults()
    check_finite(env, slot.obs, "observation", step, rows)
    check_finite(env, slot.reward, "reward", step, rows)
    if slot.truncated[rows].any():
        check_finite(env, env.final_obs, "final observation", step, rows, slot.truncated[rows])
    if slot.action_mask is not None:
        check_masks(env, slot.action_mask, step, rows)


def check_finite(
    env: VecEnv, values: ArrayTree, what: str, step: int, rows: slice = ALL_ROWS, where: Flags | None = None
) -> None:
    """Reject NaN and infinity before they reach networks or statistics; the error names env, step and dimension."""
    for key, whole in tree_items(values):
        leaf = whole[rows]
        if leaf.dtype.kind != "f":
            continue
        is_finite = np.isfinite(leaf)
        if not np.logical_and.reduce(is_finite, axis=None):
            bad = ~is_finite
            if where is not None:
                bad &= where.reshape(-1, *([1] * (leaf.ndim - 1)))
            if bad.any():
                row, *index = (int(i) for i in np.argwhere(bad)[0])
                raise nonfinite_error(env, what, key, rows.start + row, index, leaf[row][tuple(index)], step)


def nonfinite_error(
    env: VecEnv, what: str, key: str, row: int, index: Sequence[int], value: float, step: int
) -> NonFiniteError:
    """The error for NaN or infinity, naming env, step and dimension."""
    place = f"{what} '{key}'" if key else what
    dimension = f", dimension {list(index) if len(index) > 1 else index[0]}" if index else ""
    return NonFiniteError(
        f"{env.describe(row)} returned {value} in its {place}{dimension} at step {step}; fix the env (this rollout was"
        " not used for training)"
    )


def check_masks(env: VecEnv, mask: Flags, step: int, rows: slice = ALL_ROWS) -> None:
    """Reject masks that forbid every action; masks of binary actions may forbid every 1."""
    dead = dead_rows(mask[rows], env.action_spec)
    if dead.any():
        raise dead_mask_error(env, rows.start + int(np.flatnonzero(dead)[0]), step)


def dead_mask_error(env: VecEnv, row: int, step: int) -> EnvError:
    """The error for a mask that forbids every action."""
    return EnvError(
        f"{env.describe(row)} returned an action mask that forbids every action at step {step}; allow at least one"
    )
