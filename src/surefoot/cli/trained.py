"""Loads a trained agent from a run directory or a model file."""

from pathlib import Path
from typing import TYPE_CHECKING

from surefoot.core.errors import CheckpointError
from surefoot.core.layers import read_yaml
from surefoot.core.trust import names_in
from surefoot.inspection.seeds_folder import refuse_seeds_folder

if TYPE_CHECKING:
    from surefoot.api import PPO


def load_agent(model: Path, env: str | None, trust: bool) -> "tuple[PPO, Path]":
    """The agent and its file: the best policy of a run, or the newest if there is none.

    The config of a run is the user's own, so the modules that it names may be imported.
    """
    from surefoot.api import PPO

    path, config = _model_file(model), model / "config.yaml"
    return PPO.load(path, env, trust=trust or (names_in(read_yaml(config)) if config.is_file() else False)), path


def _model_file(model: Path) -> Path:
    if not model.is_dir():
        return model
    from surefoot.training.run_directory import RunDirectory

    refuse_seeds_folder(model)
    run = RunDirectory(model)
    if run.best.exists():
        return run.best
    if not run.saved():
        raise CheckpointError(f"{model} has no checkpoint yet; wait for the first one, or lower train.checkpoint_every")
    return run.saved()[0]
