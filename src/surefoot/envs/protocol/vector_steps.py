"""Checks what the `step` of a vector env returns: shapes and dtypes first, then the contents of whole arrays."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.data.zeros_and_ones import zeros_and_ones
from surefoot.envs.protocol import Flags
from surefoot.envs.protocol.steps import plain_info
from surefoot.errors import EnvError
from surefoot.output.quoted import quoted

_WHO = "the vector env"


class VectorStep(NamedTuple):
    """The five values of a step of N rows."""

    obs: Any
    reward: NDArray[Any]  # [N]
    terminated: Flags  # [N]
    truncated: Flags  # [N]
    infos: dict[str, Any]


def vector_step(result: Any, num_rows: int) -> VectorStep:
    """The checked step; `[N, 1]` is accepted for `[N]`, and 0 and 1 for flags."""
    if not isinstance(result, tuple) or len(result) != 5:
        size = len(result) if isinstance(result, tuple) else type(result).__name__
        raise EnvError(f"{_WHO}: step must return (obs, rewards, terminations, truncations, infos), got {size}")
    obs, reward, terminated, truncated, infos = result
    return VectorStep(
        obs,
        _rewards(reward, num_rows),
        _flags(terminated, num_rows, "the terminations"),
        _flags(truncated, num_rows, "the truncations"),
        plain_info(infos, "step", _WHO),
    )


def vector_reset(result: Any) -> tuple[Any, dict[str, Any]]:
    """The observations and infos of a reset."""
    if not isinstance(result, tuple) or len(result) != 2:
        raise EnvError(f"{_WHO}: reset must return (obs, infos), got {quoted(result)}")
    return result[0], plain_info(result[1], "reset", _WHO)


def _flags(value: Any, num_rows: int, what: str) -> Flags:
    """One flag per row."""
    flags = zeros_and_ones(value, kinds="iu")
    if flags is None or flags.shape not in ((num_rows,), (num_rows, 1)):
        raise EnvError(f"{_WHO}: {what} must be {num_rows} booleans, one per row, got {_described(value)}")
    return flags.reshape(num_rows)


def told(infos: Mapping[str, Any], name: str, num_rows: int) -> tuple[Any, Flags]:
    """An entry of the infos, checked for its length, and the rows that have a value, which `_name` marks."""
    values = infos.get(name)
    if values is None:
        return None, np.zeros(num_rows, dtype=bool)
    refuse_other_lengths(values, num_rows, f"infos['{name}']")
    given = infos.get(f"_{name}")
    every = np.ones(num_rows, dtype=bool)
    return values, every if given is None else _flags(given, num_rows, f"infos['_{name}']")


def _rewards(value: Any, num_rows: int) -> NDArray[Any]:
    try:
        array = np.asarray(value)
    except Exception:  # lists of uneven length, objects whose conversion fails
        array = np.empty(0)
    if array.shape not in ((num_rows,), (num_rows, 1)) or array.dtype.kind not in "fiub":
        raise EnvError(f"{_WHO}: the rewards must be {num_rows} numbers, one per row, got {_described(value)}")
    return array.reshape(num_rows)


def _described(value: Any) -> str:
    return f"{quoted(value)} of shape {value.shape}" if isinstance(value, np.ndarray) else quoted(value)


def refuse_other_lengths(batch: Any, num_rows: int, what: str) -> None:
    """Refuse a batch, maybe nested, that does not have one entry per row."""
    components = batch.values() if isinstance(batch, dict) else batch if isinstance(batch, tuple) else None
    for inner in components or ():
        refuse_other_lengths(inner, num_rows, what)
    if components is not None:
        return
    try:
        length = len(batch)
    except Exception:  # not a sequence
        length = None
    if length != num_rows:
        found = quoted(batch) if length is None else f"{length} entries"
        raise EnvError(f"{_WHO}: {what} must have one entry per row ({num_rows}), got {found}")
