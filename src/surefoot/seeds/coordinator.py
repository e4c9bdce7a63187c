"""Trains several seeds side by side; whatever ends this process, the same command continues what is missing."""

import logging
import math
import shlex
import sys
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from surefoot.assembly import run_of_job
from surefoot.compose import Specs, build_env, build_policy
from surefoot.data.records import IterationReport
from surefoot.evaluation.evaluation import check_best_metric
from surefoot.jobs.job import Job, Say
from surefoot.jobs.local import LocalBackend
from surefoot.jobs.pool import Pool
from surefoot.run import Run
from surefoot.seeds.plan import SeedsPlan
from surefoot.settings.config import Config
from surefoot.settings.layers import build_config
from surefoot.storage.folder_lock import locked, unwritable
from surefoot.telemetry.sinks import check_sinks
from surefoot.training.hooks import Hook
from surefoot.training.run_directory import RunDirectory
from surefoot.training.signals import StopSignal

TASK = "surefoot.seeds.coordinator:run_seed"
_SAY_EVERY_S = 0.5
_log = logging.getLogger("surefoot")


class Watcher(Protocol):
    """Sees what happens to the run of a seed."""

    def progress(self, seed: int, said: dict[str, Any]) -> None:
        """It trains."""

    def died(self, seed: int, why: str) -> None:
        """Its process died and is started again."""

    def finished(self, seed: int, result: dict[str, Any]) -> None:
        """It has reached its end, now or earlier."""

    def failed(self, seed: int, error: str) -> None:
        """It ended with an error; the others continue."""


@dataclass(frozen=True)
class Outcome:
    """What came of all seeds."""

    finished: dict[int, dict[str, Any]]
    errors: dict[int, str]
    exit_code: int
    """128 plus the signal that stopped this process, or 0."""


def check(config: Config) -> None:
    """Refuse before anything is written what every run would refuse."""
    check_sinks(config.log)
    with closing(build_env(config, rows=1)) as env:
        build_policy(config, Specs(env.obs_spec, env.action_spec))
        check_best_metric(config.train.best_metric, env.metrics)


def train_seeds(plan: SeedsPlan, watcher: Watcher) -> Outcome:
    """Train all seeds that have not finished yet, as many at a time as there are cores for."""
    try:
        with locked(plan.folder, "folder of seeds"):
            plan.refuse_lost()
            begun = {seed for seed in plan.seeds if RunDirectory(plan.directory_of(seed)).has_begun}
            plan.write(begun)
            return _train(plan, watcher, begun)
    except OSError as error:
        raise unwritable(plan.folder, error) from error


def _train(plan: SeedsPlan, watcher: Watcher, begun: set[int]) -> Outcome:
    finished, errors = plan.results(), dict[int, str]()
    for seed, result in finished.items():
        watcher.finished(seed, result)
    # A run may be silent for as long as it likes, like one that is trained alone.
    with Pool(LocalBackend(), plan.slots, math.inf) as pool, StopSignal() as stop:
        for seed in plan.seeds:
            if seed not in finished:
                pool.submit(_job(plan, seed))
        for event in pool.events(stop.is_requested):
            seed = int(event.job.arguments["seed"])
            if event.progress is not None:
                if seed not in begun:
                    begun.add(seed)
                    plan.write(begun)
                watcher.progress(seed, event.progress)
            elif event.death:
                if not stop.is_requested():
                    watcher.died(seed, event.death)
            elif event.error is not None:
                errors[seed] = str(event.error).removeprefix(f"{event.job.name}: ")
                watcher.failed(seed, errors[seed])
            else:
                finished[seed] = event.result
                plan.keep(finished)
                watcher.finished(seed, event.result)
    return Outcome(finished, errors, stop.exit_code)


def _job(plan: SeedsPlan, seed: int) -> Job:
    arguments = {
        "seed": seed,
        "directory": str(plan.directory_of(seed).resolve()),
        "config": plan.config_of(seed).model_dump(mode="json"),
        "command": list(plan.command),
    }
    return Job(f"seed {seed}", TASK, arguments, plan.config.train.threads)


def run_seed(arguments: dict[str, Any], say: Say) -> dict[str, Any]:
    """Train a run to its end, from its newest checkpoint if there is one; returns the step that it reached.

    Arguments: `directory`, `config`, and `command`, what the user typed.
    """
    config, tell = build_config(arguments["config"]), Tell(say)
    silent = build_config(arguments["config"], {"log.console": "off"})
    with run_of_job(Path(arguments["directory"]), silent, [tell]) as run:
        assert run.directory is not None
        run.directory.write_config(config)  # alone, the run has a display of its own again
        tell.source = run
        if arguments["command"]:
            _log.info("command: %s", shlex.join(["surefoot", *arguments["command"]]))
        if not run.is_complete:
            _, code = run.train()
            if code:  # without a result, the run is continued by the next command
                sys.exit(code)
        return {"step": run.progress.step, "wanted": config.train.steps, "reason": run.stop_reason}


class Tell(Hook):
    """Reports what the display of all seeds shows."""

    source: Run

    def __init__(self, say: Say) -> None:
        super().__init__()
        self._say, self._said = say, 0.0
        self._shown: dict[str, Any] = {}

    def begin(self) -> None:
        self._say({"step": self.run.progress.step})

    def after_iteration(self, report: IterationReport) -> None:
        rewards = [episode.total_reward for episode in report.stats.recent]
        seconds = report.rollout_s + report.learn_s
        self._shown = {
            "reward": sum(rewards) / len(rewards) if rewards else None,
            "rate": report.stats.num_steps / seconds if seconds > 0 else None,
        }
        if time.monotonic() - self._said >= _SAY_EVERY_S:
            self._tell()

    def end(self) -> None:
        self._tell()

    def _tell(self) -> None:
        self._said, evaluation = time.monotonic(), self.source.evaluation
        last = None if evaluation is None or evaluation.last is None else evaluation.last.mean_reward
        alerts = [alert.label for alert in self.source.alerts.raised]
        self._say({"step": self.run.progress.step, **self._shown, "score": last, "alerts": alerts})
