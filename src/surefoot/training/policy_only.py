"""Checkpoints of a policy alone: what acting and fine-tuning need, without the optimizer, the envs and the progress."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from surefoot.envs.protocol.agent_parameters import AGENT_PARAMETERS
from surefoot.storage.saved import Saved, reading
from surefoot.storage.state import ModuleState, Stateful, load_states
from surefoot.training.stateful import AgentParameters

if TYPE_CHECKING:
    from pathlib import Path

    from surefoot.training.trainer import Trainer

_ACTING = ("config", "obs_spec", "action_spec", "policy")
_MASKED = "masked"
"""Whether the envs had action masks, without which such a policy must not act."""
_SCALER = "reward_scaler"
"""Statistics of the returns that scaled the rewards: the critic's values are on their scale."""


def policy_only(state: Mapping[str, Any], source: "Path | str" = "the checkpoint") -> dict[str, Any]:
    """The state of a policy-only checkpoint, from that of any checkpoint."""
    if is_policy_only(state):
        return dict(state)
    with reading(source):
        scaler = Saved(state)["scorer"][_SCALER].value
        kept = Saved(state).only([*_ACTING, *([AGENT_PARAMETERS] if state.get(AGENT_PARAMETERS) else [])]).value
        # The running sums belong to episodes that are left behind.
        scaler = None if scaler is None else {**scaler, "carried": torch.zeros(0)}
        return {**kept, _MASKED: saved_with_masks(state), _SCALER: scaler}


def is_policy_only(state: Mapping[str, Any]) -> bool:
    """Whether a checkpoint has no state of a trainer."""
    return _SCALER in state


def saved_with_masks(state: Mapping[str, Any]) -> bool:
    """Whether the envs of a saved agent had action masks; policy-only checkpoints of older versions do not tell."""
    if is_policy_only(state):
        return bool(state.get(_MASKED, False))
    rows = state.get("collector")
    opening = rows.get("opening") if isinstance(rows, dict) else None
    return isinstance(opening, dict) and opening.get("action_mask") is not None


def start_from(trainer: "Trainer", state: Mapping[str, Any], source: "Path | str") -> None:
    """Give a new trainer the weights and normalizers of a policy-only state; on an error nothing is changed."""
    env = trainer.collector.rows.env
    stateful: dict[str, Stateful] = {
        "policy": ModuleState(trainer.policy, "policy"),
        AGENT_PARAMETERS: AgentParameters(env),
    }
    if trainer.scorer.reward_scaler is not None and state[_SCALER] is not None:
        stateful[_SCALER] = trainer.scorer.reward_scaler
    with reading(source):
        load_states(stateful, state)
