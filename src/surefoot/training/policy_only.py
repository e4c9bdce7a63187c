"""Checkpoints of a policy alone: what acting and fine-tuning need, without the optimizer, the envs and the progress."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from surefoot.core.saved import Saved, reading
from surefoot.core.state import ModuleState, Stateful, load_states

if TYPE_CHECKING:
    from pathlib import Path

    from surefoot.training.trainer import Trainer

_ACTING = ("config", "obs_spec", "action_spec", "policy")
_SCALER = "reward_scaler"
"""Statistics of the returns that scaled the rewards: the critic's values are on their scale."""


def policy_only(state: Mapping[str, Any], source: "Path | str" = "the checkpoint") -> dict[str, Any]:
    """The state of a policy-only checkpoint, from that of any checkpoint."""
    if is_policy_only(state):
        return dict(state)
    with reading(source):
        scaler = Saved(state)["scorer"][_SCALER].value
        kept = Saved(state).only(_ACTING).value
        # The running sums belong to episodes that are left behind.
        return {**kept, _SCALER: None if scaler is None else {**scaler, "carried": torch.zeros(0)}}


def is_policy_only(state: Mapping[str, Any]) -> bool:
    """Whether a checkpoint has no state of a trainer."""
    return _SCALER in state


def start_from(trainer: "Trainer", state: Mapping[str, Any], source: "Path | str") -> None:
    """Give a new trainer the weights and normalizers of a policy-only state; on an error nothing is changed."""
    parts: dict[str, Stateful] = {"policy": ModuleState(trainer.policy, "policy")}
    if trainer.scorer.reward_scaler is not None and state[_SCALER] is not None:
        parts[_SCALER] = trainer.scorer.reward_scaler
    with reading(source):
        load_states(parts, state)
