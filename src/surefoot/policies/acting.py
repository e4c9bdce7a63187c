"""Validates and converts the arguments of `predict` other than the observation."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from surefoot.data.records import State
from surefoot.data.specs import ArraySpec, HybridSpec, dead_rows, mask_pieces
from surefoot.data.zeros_and_ones import MASK_RULE, zeros_and_ones
from surefoot.errors import PolicyError
from surefoot.output.quoted import quoted
from surefoot.policies.policy import Policy


def as_state(given: Any, policy: Policy, rows: int) -> State:
    """The recurrent state: the initial one if None is given, else the one that `predict` returned last."""
    fresh = policy.initial_state(rows)
    if given is None:
        return fresh
    try:
        tensors = tuple(torch.as_tensor(tensor) for tensor in given)
    except (TypeError, ValueError, RuntimeError):
        tensors = (torch.empty(0),) * (len(fresh) + 1)
    if [(tensor.shape, tensor.dtype) for tensor in tensors] != [(tensor.shape, tensor.dtype) for tensor in fresh]:
        raise PolicyError(
            f"the state does not fit {rows} rows of this policy; pass the state that predict returned last, or None"
        )
    return tensors


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
    read = [zeros_and_ones(piece) for piece in (mask_pieces(given, spec) if isinstance(spec, HybridSpec) else [given])]
    if any(piece is None for piece in read):
        raise PolicyError(f"action_mask is {quoted(given)}; {MASK_RULE}")
    choices = spec.num_choices or spec.size
    pieces = [piece for piece in read if piece is not None]
    if sum(piece.size for piece in pieces) != rows * choices:
        shapes = ", ".join(str(piece.shape) for piece in pieces)
        raise PolicyError(f"action_mask must have {choices} flags per row for {rows} rows, not shape {shapes}")
    mask = np.concatenate([piece.reshape(rows, -1) for piece in pieces], axis=1)
    if dead_rows(mask, spec).any():
        raise PolicyError("action_mask forbids every action of a row; allow at least one")
    return torch.from_numpy(mask)
