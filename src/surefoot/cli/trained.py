"""A trained agent from what the command line names: a run directory or a model file."""

from pathlib import Path
from typing import TYPE_CHECKING

from surefoot.core.errors import CheckpointError

if TYPE_CHECKING:
    from surefoot.api import PPO


def load_agent(model: Path, env: str | None) -> "tuple[PPO, Path]":
    """The agent and its file: a run's best policy, or its newest if none is marked best."""
    from surefoot.api import PPO

    path = _model_file(model)
    agent = PPO.load(path, env)
    if model.is_file() and env is None and ":" in agent.config.env.id:
        raise CheckpointError(
            f"{model} asks to import '{agent.config.env.id}'; if you trust it, say so with --env {agent.config.env.id}"
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
        raise CheckpointError(f"{model} holds no checkpoint yet")
    return run.saved()[0]
