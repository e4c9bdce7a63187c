"""Checks of every step before the policy sees it: finite observations and rewards, masks that allow an action."""

from collections.abc import Sequence

import numpy as np

from surefoot.data.specs import dead_rows
from surefoot.data.tree import tree_items
from surefoot.envs.protocol import ALL_ROWS, ArrayTree, Flags, Slot, VecEnv
from surefoot.errors import EnvError, NonFiniteError


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
