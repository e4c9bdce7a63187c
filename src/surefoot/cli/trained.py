"""Loads a trained agent: from a model file, a run directory or the zoo."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from surefoot.api import PPO


def load_agent(model: str | Path, env: str | None, trust: bool) -> "tuple[PPO, Path]":
    """The agent and its file; `surefoot.models` says what names a model."""
    from surefoot.api import PPO
    from surefoot.models import find_model

    return PPO.load(model, env, trust=trust), find_model(model).file
