"""A run in its directory: new, or continued from a checkpoint. Shared by all commands and jobs that train."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surefoot.compose import (
    Specs,
    build_env,
    build_saved_policy,
    build_trainer,
    check_spaces,
    resumed_config,
    saved_setup,
)
from surefoot.envs.protocol import VecEnv
from surefoot.errors import DirectoryInUseError
from surefoot.machine.ranks import ALONE, Ranks
from surefoot.run import Run
from surefoot.settings.config import Config
from surefoot.starting import new_trainer
from surefoot.storage.trust import Trust, names_in
from surefoot.training.hooks import HookLike
from surefoot.training.run_directory import RunDirectory
from surefoot.training.trainer import Trainer

LOCK_PATIENCE_S = 60.0
"""How long to wait for a process that is about to end and still holds the directory."""


@dataclass(frozen=True)
class SavedRun:
    """A checkpoint, with the config and the specs in it."""

    path: Path
    state: Mapping[str, Any]
    config: Config
    specs: Specs

    @staticmethod
    def of(found: tuple[Path, Mapping[str, Any]], trust: Trust) -> "SavedRun":
        """Read what a checkpoint says; kinds outside the package must be trusted."""
        path, state = found
        return SavedRun(path, state, *saved_setup(state, path, trust))


def trainer_of(config: Config, env: VecEnv, saved: SavedRun | None, ranks: Ranks = ALONE) -> tuple[Trainer, Specs]:
    """The trainer of a new run, or of one that continues from a checkpoint, which is not loaded yet."""
    if saved is None:
        return new_trainer(config, env, ranks)
    check_spaces(env, saved.specs)
    policy = build_saved_policy(config, saved.specs, saved.state, saved.path)
    return build_trainer(config, env, policy, ranks), saved.specs


def continued_run(
    config: Config,
    env: VecEnv,
    saved: SavedRun | None,
    directory: RunDirectory | None,
    hooks: Sequence[HookLike] = (),
    ranks: Ranks = ALONE,
) -> Run:
    """A run that begins, or continues from a checkpoint."""
    trainer, specs = trainer_of(config, env, saved, ranks)
    run = Run(trainer, config, specs, None, directory, hooks, ranks)
    if saved is not None:
        run.load_state(saved.state, saved.path)
    return run


@contextmanager
def run_of_job(path: Path, config: Config, hooks: Sequence[HookLike]) -> Iterator[Run]:
    """The run of a directory, from its newest checkpoint if there is one: a job that is restarted continues."""
    directory, wanted = RunDirectory(path), config.model_dump(mode="json")
    with entered(directory):
        saved = SavedRun.of(directory.newest(), names_in(wanted)) if directory.has_begun else None
        config = config if saved is None else resumed_config(saved.config, wanted)
        with closing(build_env(config)) as env:
            run = continued_run(config, env, saved, directory, hooks)
            directory.write_config(config)
            yield run


@contextmanager
def entered(directory: RunDirectory) -> Iterator[None]:
    """Inside, this process holds the directory; the process of an earlier attempt may still be saving the run."""
    deadline = time.monotonic() + LOCK_PATIENCE_S
    while True:
        try:
            directory.__enter__()
            break
        except DirectoryInUseError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
    try:
        yield
    finally:
        directory.__exit__()
