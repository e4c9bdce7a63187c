"""Shared by `train` and `resume`: run to the end, then print the results and where the files are."""

import logging
import shlex
from collections.abc import Sequence
from contextlib import closing, nullcontext

from surefoot.assembly import assemble
from surefoot.cli.lines import LABEL, tell, tell_next, wrapped
from surefoot.cli.trained import or_started_in_python
from surefoot.compose import build_env
from surefoot.envs.protocol import VecEnv
from surefoot.machine.ranks import ALONE, Ranks
from surefoot.models import find_model
from surefoot.run import Run
from surefoot.settings.config import Config
from surefoot.telemetry.console import warnings_on_stderr
from surefoot.training.alike import check_settings
from surefoot.training.run_directory import RunDirectory

_log = logging.getLogger("surefoot")


def train_from_start(
    config: Config,
    directory: RunDirectory | None,
    ranks: Ranks = ALONE,
    preset: str = "",
    command: Sequence[str] = (),
) -> int:
    """Start a run in a directory, which the first of several processes has; returns the exit code."""
    start = config.train.start_from
    check_settings(ranks, config, None if start is None else find_model(start).file)
    with closing(training_envs(config, ranks)) as env:
        # Built before the directory, so that invalid combinations leave no empty run behind.
        with or_started_in_python(start, config.env.id, config.train.steps):
            run = assemble(config, env, directory=directory, ranks=ranks)
        with directory or nullcontext():
            if directory is not None:
                directory.write_config(config)
                log_command(command)
                if preset:
                    tell("preset", preset)
                if config.train.start_from:
                    tell("from", config.train.start_from)
            return finish(run)


def log_command(command: Sequence[str]) -> None:
    """Write to log.txt what the user typed, from which the report says how to repeat the run."""
    if command:
        _log.info("command: %s", shlex.join(["surefoot", *command]))


def training_envs(config: Config, ranks: Ranks) -> VecEnv:
    """The envs of a run that is about to begin; there is no log yet for what they warn about."""
    with warnings_on_stderr():
        return build_env(config, ranks=ranks)


def finish(run: Run) -> int:
    """Train and print the results; returns the exit code."""
    if run.ranks.is_first:
        if run.ranks.size > 1:
            tell("processes", str(run.ranks.size))
        tell("rollouts", run.trainer.collector.description)
        tell("learning", run.learning)
    try:
        evaluation, code = run.train()
    finally:
        with warnings_on_stderr():  # the run is saved: what an env does now costs a warning
            run.envs.close()
    directory = run.directory
    if directory is None:  # not the first of several processes
        return code
    step = run.trainer.progress.step
    if code:
        print(wrapped(f"stopped at step {step:,}; 'surefoot resume {directory.path}' continues the run", LABEL))
        return code
    print(wrapped(f"trained {step:,} steps" + f" ({run.stop_reason})" * bool(run.stop_reason), LABEL))
    if evaluation is not None:
        tell("evaluated", evaluation.description)
    has_events = run.config.log.tensorboard
    tell("run", f"{directory.path}  (config.yaml, metrics.jsonl, log.txt{', TensorBoard events' * has_events})")
    newest = directory.saved()
    if newest:
        tell("newest", str(newest[0]))
    if directory.best.exists():
        tell("best", str(directory.best))
    tensorboard = [("tensorboard", "--logdir", directory.path.parent)] * has_events
    tell_next(*(("surefoot", command, directory.path) for command in ("evaluate", "doctor", "report")), *tensorboard)
    return 0
