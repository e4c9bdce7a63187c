"""Migrates older checkpoint formats, one version at a time.

When the format changes: increment FORMAT_VERSION, add a migration from the previous version, and keep a fixture of it
in `tests/training/checkpoints/`. Renamed settings are handled where configs are built (settings/old_settings.py).
"""

from collections.abc import Callable
from typing import Any

from surefoot.errors import CheckpointError

FORMAT_VERSION = 3

_DERIVED = ("optimizer", "update", "reward_scaler")


def _states_by_name(state: dict[str, Any]) -> dict[str, Any]:
    """Version 2: every state under its name; terms, transforms and hooks have states too."""
    if "optimizer" not in state:  # only a policy
        return state
    schedules = {}
    config = state.get("config", {}).get("optimizer", {})
    if config.get("lr_schedule") == "kl_adaptive":
        saved = state["schedules"]
        adaptive = {"value": saved["adaptive_lr"]}
        schedules["lr"] = {"kind": "kl_adaptive", "start": saved["configured_lr"], "state": adaptive}
    return {key: value for key, value in state.items() if key not in _DERIVED} | {
        "gradient": {"adam": state["optimizer"], "transforms": {}},
        "objective": {},
        "progress": {**state["progress"], "update": state["update"]},
        "scorer": {"reward_scaler": state["reward_scaler"], "estimator": {}},
        "schedules": schedules,
        "hooks": {},
    }


def _same(state: dict[str, Any]) -> dict[str, Any]:
    """Version 3: tuples, sets, bytes and keys other than strings are marked; older files have none."""
    return state


MIGRATIONS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {1: _states_by_name, 2: _same}
"""Version n -> function that converts its state to version n + 1."""


def migrate(state: dict[str, Any], version: int) -> dict[str, Any]:
    """Convert a state to the current version."""
    for old in range(version, FORMAT_VERSION):
        if old not in MIGRATIONS:
            raise CheckpointError(
                f"checkpoint format version {old} is no longer supported; use an older version of Surefoot"
            )
        try:
            state = MIGRATIONS[old](state)
        except (KeyError, TypeError, AttributeError) as error:
            raise CheckpointError(f"the checkpoint (format version {old}) is damaged: {error}") from error
    return state
