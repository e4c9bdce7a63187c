"""The one route into a run: commands, `PPO`, jobs of sweeps and seeds, and members of populations get theirs here."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from surefoot.compose import Specs, build_env, build_policy, build_saved_policy, build_trainer
from surefoot.envs.make import EnvSource
from surefoot.envs.protocol import VecEnv
from surefoot.errors import DirectoryInUseError
from surefoot.machine.ranks import ALONE, Ranks
from surefoot.policies.policy import Policy
from surefoot.run import Run
from surefoot.saved_run import SavedRun, check_spaces, resumed_config
from surefoot.settings.config import Config
from surefoot.starting import starting_point
from surefoot.storage.trust import names_in
from surefoot.training.hooks import HookLike
from surefoot.training.policy_only import start_from
from surefoot.training.run_directory import RunDirectory

LOCK_PATIENCE_S = 60.0
"""How long to wait for a process that is about to end and still holds the directory."""
Take = Callable[[Run, SavedRun], None]
"""Gives a new run something of a saved one."""


def resumed(run: Run, saved: SavedRun) -> None:
    """The run continues where the saved one stopped."""
    run.load_state(saved.state, saved.path)


def started(run: Run, saved: SavedRun) -> None:
    """The run starts from the weights and normalizers of the saved one."""
    start_from(run.trainer, saved.state, saved.path)


def assemble(
    config: Config,
    env: VecEnv,
    saved: SavedRun | None = None,
    take: Take = resumed,
    *,
    policy: Policy | None = None,
    source: EnvSource | None = None,
    directory: RunDirectory | None = None,
    hooks: Sequence[HookLike] = (),
    ranks: Ranks = ALONE,
) -> Run:
    """A run in these envs: new, or with what `take` takes from a saved one; with a policy if the caller has one.

    With other processes, every one of them must call this.
    """
    specs = Specs(env.obs_spec, env.action_spec)
    if saved is None:
        saved, take = starting_point(config, specs), started
    else:
        check_spaces(env, saved.specs)
    if policy is None and saved is not None:
        policy = build_saved_policy(config, specs, saved.state, saved.path)
    trainer = build_trainer(config, env, policy or build_policy(config, specs), ranks)
    run = Run(trainer, config, specs, source, directory, hooks, ranks)
    if saved is not None:
        take(run, saved)
    return run


@contextmanager
def run_of_job(path: Path, config: Config, hooks: Sequence[HookLike]) -> Iterator[Run]:
    """The run of a directory, from its newest checkpoint if there is one: a job that is restarted continues."""
    directory, wanted = RunDirectory(path), config.model_dump(mode="json")
    with entered(directory):
        saved = SavedRun.of(directory.newest(), names_in(wanted)) if directory.has_begun else None
        config = config if saved is None else resumed_config(saved.config, wanted)
        with closing(build_env(config)) as env:
            run = assemble(config, env, saved, directory=directory, hooks=hooks)
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
