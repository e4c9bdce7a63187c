"""Loads a trained agent from a run directory or a model file."""

from pathlib import Path
from typing import TYPE_CHECKING

from surefoot.core.errors import CheckpointError

if TYPE_CHECKING:
    from surefoot.api import PPO


def load_agent(model: Path, env: str | None) -> "tuple[PPO, Path]":
    """The agent and its file: the best policy of a run, or the newest if there is none."""
    from surefoot.api import PPO

    path = _model_file(model)
    agent = PPO.load(path, env)
    if model.is_file() and env is None and ":" in agent.config.env.id:
        raise CheckpointError(
            f"{model} wants to import '{agent.config.env.id}'; if you trust it, pass --env {agent.config.env.id}"
        )
    return agent, path


def _model_file(model: Path) -> Path:
    if not model.is_dir():
        return model
    from surefoot.training.run_directory import RunDirectory

    run = RunDirectory(model)
    if run.best.exists():
        return run.best
    if not run.saved():
        raise CheckpointError(f"{model} has no checkpoint yet; wait for the first one, or lower train.checkpoint_every")
    return run.saved()[0]
