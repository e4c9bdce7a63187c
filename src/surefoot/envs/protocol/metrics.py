"""Metrics: numbers that envs declare by name and report in their infos."""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.envs.protocol import SUCCESS_RATE, Flags
from surefoot.envs.protocol.steps import Describe, one_number
from surefoot.envs.protocol.vector_steps import told
from surefoot.errors import EnvError

SUMMARIES = ("last", "mean", "sum")
"""How the values of an episode become one number: the value of the final step, the mean, or the sum."""
_TAKEN = ("mean_reward", "std_reward", "mean_ep_length")
"""Names that evaluations already use."""
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_LARGEST = float(np.finfo(np.float32).max)


_IS_SUCCESS = "is_success"
"""The key of the infos that the success rate is read from."""


def check_name(name: Any, what: str, who: str) -> None:
    """Reject names that do not work as config keys or chart names."""
    if not isinstance(name, str) or not _PLAIN.fullmatch(name):
        raise EnvError(
            f"{who} declares the {what} {name!r}; names start with a letter and contain only letters, digits and ._-/"
        )


def declared_metrics(own: Any, chosen: Mapping[str, str], who: str) -> dict[str, str]:
    """Name -> summary, in order: the metrics that an env declares, then those that the setting env.metrics adds."""
    declared = {} if own is None else own
    if not isinstance(declared, Mapping):
        raise EnvError(f"{who}: the attribute 'metrics' must be a dict from names to summaries, not {own!r}")
    metrics = {**declared, **chosen}
    for name, summary in metrics.items():
        check_name(name, "metric", who)
        if name in _TAKEN:
            raise EnvError(f"{who} declares the metric '{name}', a name that evaluations already use; rename it")
        if summary not in SUMMARIES:
            raise EnvError(
                f"{who} declares the metric '{name}' with the summary {summary!r}; use one of {', '.join(SUMMARIES)}"
            )
    return metrics


def with_success_rate(metrics: dict[str, str]) -> dict[str, str]:
    """The metrics of an env that declares none itself: with `info["is_success"]`, unless the settings name it."""
    return metrics if {SUCCESS_RATE, _IS_SUCCESS} & metrics.keys() else metrics | {SUCCESS_RATE: "last"}


class MetricReader:
    """Reads the declared metrics from infos into rows `[M]`, NaN if a step has no value."""

    def __init__(self, metrics: Mapping[str, str]) -> None:
        self._names = tuple(metrics)

    def __len__(self) -> int:
        return len(self._names)

    def read(self, info: Mapping[str, Any], target: NDArray[np.float32], row: int, who: Describe) -> None:
        """Read one step of one row."""
        for place, name in enumerate(self._names):
            key, check = _source(name, info)
            target[row, place] = check(info.get(key), key, row, who)

    def read_batch(self, infos: Mapping[str, Any], target: NDArray[np.float32], rows: Flags, who: Describe) -> None:
        """Read some rows of a vector env's infos: one array per name; `_name` marks the rows that have a value."""
        for place, name in enumerate(self._names):
            key, check = _source(name, infos)
            target[rows, place] = math.nan
            try:
                values, given = told(infos, key, len(rows))
            except EnvError:
                if check is _checked:
                    raise
                continue
            if _is_plain(values, len(rows)):
                is_value = given if check is _checked else given & (values >= 0) & (values <= 1)
                target[rows, place] = np.where(is_value, values, math.nan)[rows]
                continue
            for row in map(int, np.flatnonzero(rows & given)):
                target[row, place] = check(values if isinstance(values, dict) else values[row], key, row, who)


def _source(name: str, info: Mapping[str, Any]) -> tuple[str, Callable[[Any, str, int, Describe], float]]:
    """The key that a metric is read from, and how: what nobody declared is not an error."""
    return (_IS_SUCCESS, _success) if name == SUCCESS_RATE and SUCCESS_RATE not in info else (name, _checked)


def _success(value: Any, name: str, row: int, who: Describe) -> float:
    """A number from 0 to 1; anything else is something that only the env understands, and no value."""
    if value is None:
        return math.nan
    try:
        number = one_number(value, row, who)
    except EnvError:
        return math.nan
    return number if 0 <= number <= 1 else math.nan


def _is_plain(values: Any, count: int) -> bool:
    """Whether a batch needs no check per row: numbers of the right shape, none of them infinite."""
    if not isinstance(values, np.ndarray) or values.shape != (count,) or values.dtype.kind not in "fiub":
        return False
    return not bool((np.abs(values.astype(np.float64)) > _LARGEST).any())


def _checked(value: Any, name: str, row: int, who: Describe) -> float:
    if value is None:
        return math.nan
    number = value if type(value) is float else one_number(value, row, who, f"the metric '{name}'")
    if abs(number) > _LARGEST:
        raise EnvError(f"{who(row)}: the metric '{name}' is {number}; report finite numbers, or NaN for no value")
    return number
