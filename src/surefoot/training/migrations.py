"""Older checkpoint formats, brought up to date one version at a time.

When the format changes: raise FORMAT_VERSION, add the step from the version before, and keep a fixture of the old one
in `tests/training/checkpoints/`.
"""

from collections.abc import Callable
from typing import Any

from surefoot.core.errors import CheckpointError

FORMAT_VERSION = 1

MIGRATIONS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}
"""Version n -> what turns its state into one of version n + 1."""


def migrate(state: dict[str, Any], version: int) -> dict[str, Any]:
    """A state of the current version."""
    for old in range(version, FORMAT_VERSION):
        if old not in MIGRATIONS:
            raise CheckpointError(f"checkpoint format version {old} is too old to be read")
        state = MIGRATIONS[old](state)
    return state
