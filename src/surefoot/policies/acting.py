"""Validates and converts the arguments of `predict` other than the observation."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from surefoot.core.errors import PolicyError
from surefoot.core.records import State
from surefoot.core.specs import ArraySpec
from surefoot.policies.policy import Policy


def as_state(given: Any, policy: Policy, rows: int) -> State:
    """The recurrent state: the initial one if None is given, else the one that `predict` returned last."""
    fresh = policy.initial_state(rows)
    if given is None:
        return fresh
    try:
        parts = tuple(torch.as_tensor(part) for part in given)
    except (TypeError, ValueError, RuntimeError):
        parts = (torch.empty(0),) * (len(fresh) + 1)
    if [(part.shape, part.dtype) for part in parts] != [(part.shape, part.dtype) for part in fresh]:
        raise PolicyError(
            f"the state does not fit {rows} rows of this policy; pass the state that predict returned last, or None"
        )
    return parts


def as_starts(given: Any, rows: int) -> Tensor:
    """Episode starts: one flag for all rows or one per row; all False if None is given."""
    flags = np.asarray(False if given is None else given)
    if flags.shape not in ((), (1,), (rows,)):
        raise PolicyError(f"episode_start must be one flag, or one per row ({rows}), not shape {flags.shape}")
    return torch.from_numpy(np.array(np.broadcast_to(flags, rows), dtype=bool))


def as_mask(given: Any, spec: ArraySpec, rows: int) -> Tensor | None:
    """The allowed actions, `[rows, choices]`."""
    if given is None:
        return None
    choices = sum(spec.sizes) if spec.sizes else spec.size
    mask = np.asarray(given)
    if mask.size != rows * choices:
        raise PolicyError(f"action_mask must have {choices} flags per row for {rows} rows, not shape {mask.shape}")
    return torch.from_numpy(mask.reshape(rows, choices).astype(bool))
