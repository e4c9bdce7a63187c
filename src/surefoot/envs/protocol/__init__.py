"""The VecEnv protocol: rows with same-step resets that write into slots of the rollout."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from surefoot.data.specs import ArraySpec, ObsSpec, mask_pieces
from surefoot.data.tree import tree_map
from surefoot.data.zeros_and_ones import MASK_RULE, zeros_and_ones
from surefoot.errors import EnvError
from surefoot.output.quoted import quoted

ArrayTree = NDArray[Any] | dict[str, NDArray[Any]]
Flags = NDArray[np.bool_]
ALL_ROWS = slice(0, None)
SUCCESS_RATE = "success_rate"
"""A metric that needs no declaration."""
OWN_STATE = "own"
"""The entry of a saved env that the env wrote itself: only the env can check it."""


@dataclass(frozen=True)
class Slot:
    """Arrays for one step of N rows in a rollout: reward and flags of the step, obs and mask for the next action."""

    obs: ArrayTree  # [N, ...]
    reward: NDArray[np.float32]  # [N]
    terminated: Flags  # [N]
    truncated: Flags  # [N]
    valid: Flags  # [N] false for dead agents and auto-reset steps
    action_mask: Flags | None  # [N, choices]
    metrics: NDArray[np.float32]  # [N, M] of the step, NaN for no value; M is 0 if they are not used

    @property
    def ended(self) -> Flags:
        """Rows whose episode ended in this step."""
        return self.terminated | self.truncated

    def of_rows(self, rows: slice) -> "Slot":
        """A view of some rows."""
        mask = None if self.action_mask is None else self.action_mask[rows]
        flags = (self.terminated[rows], self.truncated[rows], self.valid[rows])
        return Slot(tree_map(lambda leaf: leaf[rows], self.obs), self.reward[rows], *flags, mask, self.metrics[rows])


class VecEnv(Protocol):
    """N rows. An engine or an adapter implements this; a collector uses nothing else.

    Rows step in groups: `send` begins a step of a group, `receive` waits for it, and a collector acts for one group
    while the others step. Row i does not depend on the groups.
    """

    num_rows: int
    first_row: int
    """The number of row 0 among all rows of a run, on which the noise depends (S13, docs/semantics.md)."""
    restarts: int
    """How often workers were restarted because they raised, died or hung."""
    obs_spec: ObsSpec
    left_out: tuple[str, ...]
    """Keys of the observation that a policy cannot learn from, with their kinds; they are not in `obs_spec`."""
    action_spec: ArraySpec
    mask_size: int
    """Size of action masks; 0 without masks."""
    final_obs: ArrayTree
    """Dense [N, ...]; after a step, the last observation of every row whose episode ended in that step."""

    metrics: dict[str, str]
    """Metrics that the envs report in every step, in the order of `Slot.metrics`: name -> last, mean or sum."""
    parameters: dict[str, NDArray[np.floating[Any]]]
    """Parameters of the envs: name -> default; a value has the shape of its default. float32 ones are the agent's."""
    parameter_values: dict[str, NDArray[np.floating[Any]]]
    """Current values: `[N]` for scalars, one array for all rows for arrays."""

    @property
    def groups(self) -> tuple[slice, ...]:
        """The rows of each group, in order; the rows of a group step together."""

    def reset(self, slot: Slot, step: int = 0) -> None:
        """Reset every row, seeded from (seed, row, step); fills obs and mask."""

    def send(self, group: int, actions: NDArray[Any]) -> None:
        """Begin a step of a group with one action per row."""

    def receive(self, group: int, slot: Slot) -> None:
        """Wait for the step of a group; fills its rows of the slot, with the next initial obs for rows that ended."""

    def describe(self, row: int) -> str:
        """Env index and seed of a row, for error messages."""

    def set_parameters(self, values: Mapping[str, Any]) -> None:
        """Set parameters between rollouts: scalars for all rows or per row, arrays for all rows; all or nothing."""

    def restore_parameters(self, saved: Mapping[str, Any]) -> None:
        """Restore saved values that fit, and reset the other parameters to their defaults."""

    def save_state(self) -> dict[str, Any] | None:
        """The state needed to continue bit for bit, or None if the envs cannot save their state."""

    def load_state(self, state: dict[str, Any], step: int = 0) -> None:
        """Continue from a saved state at a step; the caller restores the observations that it saved."""

    def close(self) -> None:
        """Release all resources; safe to call twice."""


def step_all(env: VecEnv, actions: NDArray[Any], slot: Slot) -> None:
    """Step all groups."""
    for group, rows in enumerate(env.groups):
        env.send(group, actions[rows])
    for group in range(len(env.groups)):
        env.receive(group, slot)


def slot_for(env: VecEnv) -> Slot:
    """A slot for one step of all rows, including metrics."""
    return new_slot(env.num_rows, env.obs_spec, env.mask_size, len(env.metrics))


def new_slot(num_rows: int, obs_spec: ObsSpec, mask_size: int, num_metrics: int = 0) -> Slot:
    """A slot with newly allocated arrays."""
    obs: ArrayTree = tree_map(lambda spec: spec.zeros(num_rows), obs_spec)
    mask = np.ones((num_rows, mask_size), dtype=bool) if mask_size else None
    return Slot(
        obs=obs,
        reward=np.zeros(num_rows, np.float32),
        terminated=np.zeros(num_rows, dtype=bool),
        truncated=np.zeros(num_rows, dtype=bool),
        valid=np.ones(num_rows, dtype=bool),
        action_mask=mask,
        metrics=np.full((num_rows, num_metrics), np.nan, np.float32),
    )


def flat_mask(mask: Any, spec: ArraySpec, who: str) -> NDArray[np.bool_]:
    """A mask as a flat array, from one array, one per choice or one per component; its size and values are checked."""
    read = [zeros_and_ones(piece) for piece in mask_pieces(mask, spec)]
    if any(piece is None for piece in read):
        raise EnvError(f"{who} returned the action mask {quoted(mask)}; {MASK_RULE}")
    flat = np.concatenate([piece.ravel() for piece in read if piece is not None]) if read else np.empty(0, dtype=bool)
    if flat.size != spec.num_choices:
        raise EnvError(
            f"{who} returned an action mask with {flat.size} entries; its action space requires {spec.num_choices}"
        )
    return flat
