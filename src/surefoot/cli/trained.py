"""Loads a trained agent: from a model file, a run directory or the zoo."""

from pathlib import Path
from typing import TYPE_CHECKING

from surefoot.core.errors import CheckpointError
from surefoot.zoo import PREFIX, zoo_entries

if TYPE_CHECKING:
    from surefoot.api import PPO


def load_agent(model: str | Path, env: str | None, trust: bool) -> "tuple[PPO, Path]":
    """The agent and its file; `surefoot.models` says what names a model."""
    _refuse_missing(str(model))  # before torch is imported
    from surefoot.api import PPO
    from surefoot.models import find_model

    return PPO.load(model, env, trust=trust), find_model(model).file


def _refuse_missing(model: str) -> None:
    if not model.startswith(PREFIX) and not Path(model).exists():
        remedy = f"did you mean {PREFIX}{model}?" if model in zoo_entries() else "pass a run, a model file or zoo:NAME"
        raise CheckpointError(f"{model} does not exist; {remedy}")
