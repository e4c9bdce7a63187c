"""The VecEnv protocol: rows that reset in the same step and fill slots of the rollout's memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from surefoot.core.errors import EnvError
from surefoot.core.specs import ArraySpec, ObsSpec
from surefoot.core.tree import tree_map

ArrayTree = NDArray[Any] | dict[str, NDArray[Any]]
Flags = NDArray[np.bool_]
ALL_ROWS = slice(0, None)


@dataclass(frozen=True)
class Slot:
    """Where one step of N rows goes, in a rollout: reward and flags of the step, obs and mask of the next."""

    obs: ArrayTree  # [N, ...]
    reward: NDArray[np.float32]  # [N]
    terminated: Flags  # [N]
    truncated: Flags  # [N]
    valid: Flags  # [N] false where nothing happened: dead agents, reset rows
    action_mask: Flags | None  # [N, choices]
    metrics: NDArray[np.float32]  # [N, M] of the step, NaN for no value; M is 0 where nobody wants them

    @property
    def ended(self) -> Flags:
        """Rows whose episode ended in this step."""
        return self.terminated | self.truncated

    def part(self, rows: slice) -> "Slot":
        """A view of some rows."""
        mask = None if self.action_mask is None else self.action_mask[rows]
        flags = (self.terminated[rows], self.truncated[rows], self.valid[rows])
        return Slot(tree_map(lambda leaf: leaf[rows], self.obs), self.reward[rows], *flags, mask, self.metrics[rows])


class VecEnv(Protocol):
    """N rows. An engine or an adapter implements this; a collector uses nothing else.

    Rows step in groups: `send` begins a step of one, `receive` waits for it, and a collector infers one group while the
    others step. Row i is the same whatever the groups are.
    """

    num_rows: int
    first_row: int
    """The number of row 0 among all rows of a run, wherever they are stepped: noise follows from it (S13)."""
    restarts: int
    """How often envs had to be replaced because they raised, died or hung."""
    obs_spec: ObsSpec
    action_spec: ArraySpec
    mask_size: int
    """Number of choices that action masks cover; 0 without masks."""
    final_obs: ArrayTree
    """Dense [N, ...]; after a step, holds the last observation of every row whose episode ended in it."""

    metrics: dict[str, str]
    """Numbers that the envs report of every step, in the order of `Slot.metrics`: name -> last, mean or sum."""
    parameters: dict[str, NDArray[np.float64]]
    """What can be set in the envs: name -> default; a value has the shape of its default."""
    parameter_values: dict[str, NDArray[np.float64]]
    """What has been set: `[N]` for single numbers, one array for all rows for arrays."""

    @property
    def groups(self) -> tuple[slice, ...]:
        """The rows of each group, in order; a group is stepped as one."""

    def reset(self, slot: Slot, step: int = 0) -> None:
        """Start every row anew, seeded from (seed, row, step); fills obs and mask."""

    def send(self, group: int, actions: NDArray[Any]) -> None:
        """Begin a step of a group's rows with an action each."""

    def receive(self, group: int, slot: Slot) -> None:
        """Wait for the step of a group; fills its rows of the slot, those that ended with their next beginning."""

    def describe(self, row: int) -> str:
        """A row for error messages: env index and seed."""

    def set_parameters(self, values: Mapping[str, Any]) -> None:
        """Between rollouts: a number for all rows or one per row, an array for all; all of it is set, or none."""

    def restore_parameters(self, saved: Mapping[str, Any]) -> None:
        """Set saved values as far as they fit, and the other parameters back to their defaults."""

    def save_state(self) -> dict[str, Any] | None:
        """All that is needed to continue from here bit for bit, or None if the envs cannot save their state."""

    def load_state(self, state: dict[str, Any], step: int = 0) -> None:
        """Continue from a saved state at a step; the caller restores the observation it saved beside it."""

    def close(self) -> None:
        """Release everything; safe to call twice."""


def step_all(env: VecEnv, actions: NDArray[Any], slot: Slot) -> None:
    """Step every row, one group beside the other."""
    for group, rows in enumerate(env.groups):
        env.send(group, actions[rows])
    for group in range(len(env.groups)):
        env.receive(group, slot)


def slot_for(env: VecEnv) -> Slot:
    """A slot for one step of all rows, metrics included."""
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


def choices(spec: ArraySpec) -> int:
    """How many entries an action mask has for this action space; 0 where masks make no sense."""
    if spec.kind in ("discrete", "multi_discrete"):
        return sum(spec.sizes)
    return spec.size if spec.kind == "multi_binary" else 0


def flat_mask(mask: Any, size: int, who: str) -> NDArray[np.bool_]:
    """A mask given flat or as one array a choice, checked for its length."""
    parts: Sequence[Any] = mask if isinstance(mask, tuple | list) else (mask,)
    flat = np.concatenate([np.asarray(part).ravel() for part in parts]).astype(bool)
    if flat.size != size:
        raise EnvError(f"{who} gave an action mask of {flat.size} entries; its action space has {size}")
    return flat
