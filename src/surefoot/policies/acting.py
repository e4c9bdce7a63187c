"""Validates and converts the arguments of `predict` other than the observation."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from surefoot.core.errors import PolicyError
from surefoot.core.quoted import quoted
from surefoot.core.records import State
from surefoot.core.specs import ArraySpec
from surefoot.core.zeros_and_ones import MASK_RULE, dead_rows, zeros_and_ones
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
    flags = zeros_and_ones(False if given is None else given, kinds="iu")
    if flags is None:
        raise PolicyError(f"episode_start must be one flag, or one per row ({rows}), not {quoted(given)}")
    if flags.shape not in ((), (1,), (rows,)):
        raise PolicyError(f"episode_start must be one flag, or one per row ({rows}), not shape {flags.shape}")
    return torch.from_numpy(np.array(np.broadcast_to(flags, rows)))


def as_mask(given: Any, spec: ArraySpec, rows: int, is_needed: bool = False) -> Tensor | None:
    """The allowed actions, `[rows, choices]`; needed by a policy that was trained with masks."""
    if given is None:
        if is_needed:
            raise PolicyError(
                "this policy was trained with action masks: pass action_mask=, such as info['action_mask'], or ones to"
                " allow every action"
            )
        return None
    mask = zeros_and_ones(given)
    if mask is None:
        raise PolicyError(f"action_mask is {quoted(given)}; {MASK_RULE}")
    choices = sum(spec.sizes) if spec.sizes else spec.size
    if mask.size != rows * choices:
        raise PolicyError(f"action_mask must have {choices} flags per row for {rows} rows, not shape {mask.shape}")
    mask = mask.reshape(rows, choices)
    if spec.sizes and dead_rows(mask, spec.sizes).any():
        raise PolicyError("action_mask forbids every action of a row; allow at least one")
    return torch.from_numpy(np.array(mask))
