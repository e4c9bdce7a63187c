"""Shards: rows in one process that step as one."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.core.errors import EnvError, SurefootError
from surefoot.core.specs import ArraySpec, ObsSpec
from surefoot.envs.protocol import ArrayTree, Slot
from surefoot.envs.protocol.declared import Declared
from surefoot.envs.protocol.metrics import MetricReader
from surefoot.envs.protocol.parameters import Parametrized, Values

_LONGEST = 300
"""Characters of a foreign error message that a message of ours quotes; the traceback has all of it."""


class Calls:
    """Says which row's env is being called, in memory that a watching process may share."""

    def __init__(self, cells: Any = None) -> None:
        self._cells = [0, 0] if cells is None else cells

    def begin(self, row: int) -> None:
        """A row's env is about to be called."""
        cells = self._cells
        cells[1] = row
        cells[0] += 1


class Shard(Parametrized):
    """Rows in this process that step as one: what adapters build on, and engines are made of."""

    num_rows: int
    obs_spec: ObsSpec
    action_spec: ArraySpec
    mask_size: int
    final_obs: ArrayTree
    """An engine may replace it with memory of its own."""
    first_row = 0
    restarts = 0

    def __init__(self, calls: Calls | None = None) -> None:
        self.calls = calls or Calls()
        self._declare(Declared())

    def _read_declarations(self, envs: range, chosen: Mapping[str, str] | None) -> None:
        """Ask each of the envs, which are numbered as in the whole run."""
        asked = [
            Declared.by(partial(self._attribute, index), chosen or {}, f"env {number}")
            for index, number in enumerate(envs)
        ]
        asked[0].refuse_differences((f"env {number}", one) for number, one in zip(envs, asked, strict=True))
        self._declare(asked[0], self.num_rows // len(envs))

    def _declare(self, declared: Declared, rows_per_env: int = 1) -> None:
        self.declared, self.metrics = declared, declared.metrics
        self._reader = MetricReader(declared.metrics)
        self._declare_parameters(declared.parameters, rows_per_env)

    @property
    def groups(self) -> tuple[slice, ...]:
        """One, of all rows."""
        return (slice(0, self.num_rows),)

    def send(self, group: int, actions: NDArray[Any]) -> None:
        """Keep the actions: the step is made when it is waited for."""
        self._actions = actions

    def receive(self, group: int, slot: Slot) -> None:
        """Make the step."""
        self.step(self._actions, slot)

    def step(self, actions: NDArray[Any], slot: Slot) -> None:
        """Step every row, reset those that ended, and fill the whole slot."""
        raise NotImplementedError

    def reset(self, slot: Slot, step: int = 0) -> None:
        """Start every row anew, seeded from (seed, row, step); fills obs and mask."""
        raise NotImplementedError

    def describe(self, row: int) -> str:
        """A row for error messages: env index and seed."""
        raise NotImplementedError

    def _apply_parameters(self, values: Values, before: Values) -> None:
        """Call the envs that a value changes for, each with its changes only."""
        for index, row in enumerate(range(0, self.num_rows, self._rows_per_env)):
            changes: dict[str, Any] = {}
            for name, value in values.items():
                if self.parameters[name].shape:
                    if not np.array_equal(before.get(name, np.nan), value):
                        changes[name] = value.copy()
                elif name not in before or before[name][row] != value[row]:
                    changes[name] = float(value[row])
            if changes:
                self.calls.begin(row)
                try:
                    self._attribute(index, "set_parameters")(changes)
                except Exception as error:
                    raise EnvError(f"{self.describe(row)} raised in set_parameters: {brief(error)}") from error

    def _attribute(self, index: int, name: str) -> Any:
        """An attribute of an env, or None."""
        raise NotImplementedError

    def save_state(self) -> dict[str, Any] | None:
        """Snapshots of the envs, one each, under `envs`; None if they cannot save their state."""
        return None

    def load_state(self, state: dict[str, Any], step: int = 0) -> None:
        """Only called with what `save_state` gave."""
        raise NotImplementedError

    def close(self) -> None:
        """Release everything; safe to call twice."""


def construct(make: Callable[[], Any], number: int) -> Any:
    """An env from its factory; what the factory raises comes with the env's number."""
    try:
        return make()
    except SurefootError:
        raise
    except Exception as error:
        raise EnvError(f"env {number} could not be made: {brief(error)}") from error


def brief(error: BaseException) -> str:
    """An exception in one line of bounded length."""
    try:
        text = str(error)
    except Exception:
        text = "(it cannot say what)"
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    shortened = line if len(line) <= _LONGEST else line[:_LONGEST] + "..."
    return f"{type(error).__name__}: {shortened}" if shortened else type(error).__name__
