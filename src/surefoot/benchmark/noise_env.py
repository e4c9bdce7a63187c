"""Rows without an environment: observations and rewards are noise, so that only learning costs time."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.data.specs import ArraySpec, ObsSpec
from surefoot.data.tree import tree_map
from surefoot.envs.protocol import ALL_ROWS, ArrayTree, Slot


class NoiseEnv:
    """A `VecEnv` with boxes as spaces and one endless episode per row."""

    first_row = restarts = mask_size = 0
    left_out: tuple[str, ...] = ()

    def __init__(self, num_rows: int, obs_size: int, action_size: int) -> None:
        self.num_rows = num_rows
        obs = ArraySpec("box", (obs_size,), "float32")
        self.obs_spec: ObsSpec = obs
        self.action_spec = ArraySpec("box", (action_size,), "float32", -1.0, 1.0)
        self.final_obs: ArrayTree = obs.zeros(num_rows)
        self.metrics: dict[str, str] = {}
        self.parameters: dict[str, NDArray[np.floating[Any]]] = {}
        self.parameter_values: dict[str, NDArray[np.floating[Any]]] = {}
        self._random = np.random.default_rng(0)

    @property
    def groups(self) -> tuple[slice, ...]:
        """One group."""
        return (ALL_ROWS,)

    def reset(self, slot: Slot, step: int = 0) -> None:
        """The first observations."""
        tree_map(self._fill, slot.obs)

    def send(self, group: int, actions: NDArray[Any]) -> None:
        """Actions change nothing."""

    def receive(self, group: int, slot: Slot) -> None:
        """The next observations; no episode ends."""
        tree_map(self._fill, slot.obs)
        self._fill(slot.reward)
        slot.terminated[:], slot.truncated[:], slot.valid[:] = False, False, True

    def describe(self, row: int) -> str:
        """For error messages."""
        return f"row {row} of noise"

    def set_parameters(self, values: Mapping[str, Any]) -> None:
        """There are none."""

    def restore_parameters(self, saved: Mapping[str, Any]) -> None:
        """There are none."""

    def save_state(self) -> dict[str, Any] | None:
        """Noise is not saved."""
        return None

    def load_state(self, state: dict[str, Any], step: int = 0) -> None:
        """Noise is not saved."""

    def close(self) -> None:
        """Nothing to release."""

    def _fill(self, array: NDArray[np.float32]) -> None:
        self._random.standard_normal(out=array, dtype=np.float32)
