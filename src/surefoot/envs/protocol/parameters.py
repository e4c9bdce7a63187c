"""Parameters: numbers and arrays that can be set in envs by name, between rollouts."""

import logging
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.envs.protocol.agent_parameters import Values, is_of_agent, without_agents
from surefoot.envs.protocol.metrics import check_name
from surefoot.errors import EnvError

_log = logging.getLogger("surefoot")


def declared_parameters(own: Any, who: str, of_agent: Any = None) -> Values:
    """The default values that an env declares, and which of them belong to the agent."""
    if not isinstance(own, Mapping):
        raise EnvError(
            f"{who} has set_parameters(), but no attribute 'parameters': a dict from names to default values"
        )
    for name in own:
        check_name(name, "parameter", who)
    names = () if of_agent is None else of_agent
    unknown = [names] if isinstance(names, str) else [name for name in names if name not in own]
    if unknown:
        raise EnvError(f"{who}: agent_parameters must be a list of names in 'parameters' (got {unknown[0]!r})")
    values = {name: _array(value, f"{who}: the default of the parameter '{name}'") for name, value in own.items()}
    return values | {name: _of_agent(name, values[name]) for name in names}


def _of_agent(name: str, value: NDArray[Any]) -> NDArray[np.float32]:
    """One read-only copy, which all envs of a process share."""
    with np.errstate(over="ignore"):
        rounded = value.astype(np.float32)
    if not rounded.shape or not np.isfinite(rounded).all():
        raise EnvError(f"the parameter '{name}' belongs to the agent: it must be an array of finite float32 numbers")
    rounded.setflags(write=False)
    return rounded


def checked_parameters(given: Any, defaults: Values, num_rows: int, rows_per_env: int) -> Values:
    """Validated values in their stored form; rejects unknown names, NaN and wrong shapes."""
    if not isinstance(given, Mapping):
        raise EnvError(f"set_parameters takes a dict from names to values, got {given!r}")
    checked = {}
    for name, value in given.items():
        if name not in defaults:
            known = f"these envs have {', '.join(defaults)}" if defaults else "these envs declare none"
            raise EnvError(f"unknown parameter '{name}'; {known}")
        fitted = _fitted(name, value, defaults[name].shape, num_rows, rows_per_env)
        checked[name] = _of_agent(name, fitted) if is_of_agent(defaults[name]) else fitted
    return checked


def _fitted(name: str, value: Any, shape: tuple[int, ...], num_rows: int, rows_per_env: int) -> NDArray[np.float64]:
    array = _array(value, f"the value of the parameter '{name}'")
    if shape:
        if array.shape != shape:
            raise EnvError(
                f"the parameter '{name}' takes one array of shape {shape} for all rows, got shape {array.shape}"
            )
        return array
    if array.shape not in ((), (num_rows,)):
        raise EnvError(f"the parameter '{name}' takes one number, or one per row ({num_rows}); got shape {array.shape}")
    rows = np.array(np.broadcast_to(array, (num_rows,)))
    per_env = rows.reshape(-1, rows_per_env)
    if (per_env != per_env[:, :1]).any():
        raise EnvError(f"the parameter '{name}' differs between agents of one env; pass the same value for all of them")
    return rows


def _array(value: Any, what: str) -> NDArray[np.float64]:
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, RuntimeError):  # lists of uneven length, tensors with a gradient
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "fiub":
        raise EnvError(f"{what} must be a number or an array of numbers, not {value!r:.60}")
    if np.isnan(array).any():
        raise EnvError(f"{what} must not be NaN")
    return array.astype(np.float64)


def values_of_rows(values: Values, defaults: Values, rows: slice) -> Values:
    """The values of some rows."""
    return {name: value if defaults[name].shape else value[rows] for name, value in values.items()}


class Parametrized:
    """Base class of everything that has rows with parameters: validates, stores and saves their values."""

    num_rows: int
    parameters: Values
    parameter_values: Values

    def _declare_parameters(self, defaults: Values, rows_per_env: int = 1) -> None:
        self.parameters, self._rows_per_env = defaults, rows_per_env
        self.parameter_values = {}

    def set_parameters(self, values: Mapping[str, Any]) -> None:
        """Set parameters by name; if one of them is invalid, or an env refuses it, none is set."""
        checked = checked_parameters(values, self.parameters, self.num_rows, self._rows_per_env)
        before = self.parameter_values
        self.parameter_values = before | checked
        try:
            if checked:
                self._apply_parameters(checked, before)
        except BaseException:
            self.parameter_values = before
            raise

    def _apply_parameters(self, values: Values, before: Values) -> None:
        """Pass validated values to the envs; `before` are the values set before, if any.

        If an env refuses, those that took the values get back what they held.
        """
        raise NotImplementedError

    def _held(self, names: Iterable[str], before: Values) -> Values:
        """What the envs held: the values set before, or the defaults."""
        defaults = {name: self.parameters[name] for name in names if name not in before}
        return {name: before[name] for name in names if name in before} | {
            name: value if value.shape else np.full(self.num_rows, value) for name, value in defaults.items()
        }

    def restore_parameters(self, saved: Mapping[str, Any]) -> None:
        """Restore saved values and reset all others to their defaults; a value that does not fit causes a warning.

        What belongs to the agent stays: it is saved with the policy.
        """
        values: dict[str, Any] = {name: self.parameters[name] for name in without_agents(self.parameter_values)}
        for name, value in saved.items():
            array = np.asarray(value)
            is_uniform = array.ndim == 1 and not self.parameters.get(name, array).shape and (array == array[0]).all()
            try:
                one = {name: array[0] if is_uniform else array}  # fits any number of rows
                values |= checked_parameters(one, self.parameters, self.num_rows, self._rows_per_env)
            except EnvError as error:
                _log.warning("a saved parameter was not restored: %s", error)
        self.set_parameters(values)

    def _with_parameters(self, state: dict[str, Any] | None) -> dict[str, Any] | None:
        """The saved state of the envs, with the current values."""
        own = without_agents(self.parameters)
        return state if state is None or not own else state | {"parameters": without_agents(self.parameter_values)}

    def _restore_from(self, state: Mapping[str, Any]) -> None:
        """Restore values before the envs' states: the effects of setting a value are part of those states."""
        if "parameters" in state:
            self.restore_parameters(state["parameters"])
