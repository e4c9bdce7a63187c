"""Shards: rows in one process that step together."""

import logging
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.data.specs import ArraySpec, ObsSpec
from surefoot.envs.protocol import ArrayTree, Slot
from surefoot.envs.protocol.agent_parameters import Values, is_of_agent
from surefoot.envs.protocol.calls import Calls, env_error
from surefoot.envs.protocol.declared import Declared
from surefoot.envs.protocol.metrics import MetricReader
from surefoot.envs.protocol.parameters import Parametrized
from surefoot.errors import EnvError
from surefoot.output.failures import brief as brief
from surefoot.philox import Stream, derived_seed

_log = logging.getLogger("surefoot")


class Shard(Parametrized):
    """Rows in this process that step together: the base class of adapters; engines consist of shards."""

    num_rows: int
    obs_spec: ObsSpec
    action_spec: ArraySpec
    mask_size: int
    final_obs: ArrayTree
    """An engine can replace it with shared memory."""
    first_row = 0
    restarts = 0
    left_out: tuple[str, ...] = ()

    def __init__(self, calls: Calls | None = None) -> None:
        self.calls = calls or Calls()
        self._declare(Declared())

    def _read_declarations(self, envs: range, chosen: Mapping[str, str] | None) -> None:
        """Collect the declarations of all envs, which are numbered as in the whole run."""
        asked = [
            Declared.by(partial(self._attribute, index), chosen or {}, f"env {number}", self._spaces(index))
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
        """A single group of all rows."""
        return (slice(0, self.num_rows),)

    def send(self, group: int, actions: NDArray[Any]) -> None:
        """Store the actions: the step happens in `receive`."""
        self._actions = actions

    def receive(self, group: int, slot: Slot) -> None:
        """Step the envs."""
        self.step(self._actions, slot)

    def step(self, actions: NDArray[Any], slot: Slot) -> None:
        """Step every row, reset those that ended, and fill the slot."""
        raise NotImplementedError

    def reset(self, slot: Slot, step: int = 0) -> None:
        """Reset every row, seeded from (seed, row, step); fills obs and mask."""
        raise NotImplementedError

    def describe(self, row: int) -> str:
        """Env index and seed of a row, for error messages."""
        raise NotImplementedError

    def _apply_parameters(self, values: Values, before: Values) -> None:
        """Call the envs whose values change, each with only its changes; if one refuses, undo those of the others."""
        for index, row in enumerate(range(0, self.num_rows, self._rows_per_env)):
            try:
                self._change(index, row, values, before)
            except EnvError:
                held = self._held(values, before)
                for earlier in range(index):
                    with suppress(EnvError):
                        self._change(earlier, earlier * self._rows_per_env, held, values)
                raise

    def _change(self, index: int, row: int, values: Values, before: Values) -> None:
        """Set what differs from before in one env."""
        changes: dict[str, Any] = {}
        for name, value in values.items():
            if self.parameters[name].shape:
                if not np.array_equal(before.get(name, np.nan), value):
                    changes[name] = value if is_of_agent(value) else value.copy()
            elif name not in before or before[name][row] != value[row]:
                changes[name] = float(value[row])
        if changes:
            self.calls.begin(row)
            try:
                self._attribute(index, "set_parameters")(changes)
            except BaseException as error:
                raise env_error(self.describe(row), "set_parameters", error) from error

    def _attribute(self, index: int, name: str) -> Any:
        """An attribute of an env, or None."""
        raise NotImplementedError

    def _spaces(self, index: int) -> tuple[ObsSpec, ArraySpec] | None:
        """The spaces of an env, if they may differ from those of others."""
        return None

    def save_state(self) -> dict[str, Any] | None:
        """Snapshots of the envs under `envs`; None if they cannot save their state."""
        return None

    def load_state(self, state: dict[str, Any], step: int = 0) -> None:
        """Continue from a state that `save_state` returned."""
        raise NotImplementedError

    def close(self) -> None:
        """Release all resources; safe to call twice."""


def env_seeds(seed: int, envs: range, step: int) -> list[int]:
    """The seeds of envs, which are numbered as in the whole run, for the episodes that begin at a step."""
    return [derived_seed(seed, env, Stream.ENV_SEED, step) for env in envs]
