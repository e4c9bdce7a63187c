"""A run of a trial, as a job: trained in its directory, from its newest checkpoint if there is one; and the finals."""

import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from surefoot.assembly import run_of_job
from surefoot.compose import evaluator
from surefoot.data.records import IterationReport
from surefoot.errors import SweepError
from surefoot.evaluation.evaluation import Evaluation, score
from surefoot.jobs.job import Job, Say
from surefoot.jobs.pool import MOST_DEATHS, Pool
from surefoot.settings.layers import build_config
from surefoot.training.hooks import Every, Hook

HEARTBEAT_S = 5.0
"""Seconds between signs of life while there is nothing else to report."""


def train_trial(arguments: dict[str, Any], say: Say) -> dict[str, Any]:
    """Train the run of a trial; returns all its evaluations: step, seconds of training and score.

    Arguments: `directory`, `config`, `episodes` per evaluation, and `target`, a score that ends the run early, or None.
    """
    # The run's own evaluation comes after its checkpoint, so a kill between the two would lose it.
    config = build_config(arguments["config"], {"train.eval_episodes": 0, "log.console": "off"})
    judge = Judge(arguments["config"], arguments["episodes"], arguments["target"], say)
    with run_of_job(Path(arguments["directory"]), config, [judge]) as run:
        if not (judge.is_done or run.is_complete):
            _, code = run.train()
            if code:  # somebody stopped this process: no result, so the job is started again
                sys.exit(code)
    if not judge.evaluations:
        raise SweepError(f"no evaluated episode has a value for '{config.train.best_metric}' (sweep.objective)")
    return {"evaluations": judge.evaluations, "steps": run.progress.step, "seconds": judge.seconds}


class Judge(Hook):
    """Evaluates the policy and reports the score, before the checkpoint of the same iteration is saved.

    Its state has all earlier evaluations, so a resumed run knows them.
    """

    def __init__(self, raw: dict[str, Any], episodes: int, target: float | None, say: Say) -> None:
        super().__init__()
        self._config = build_config(raw, {"train.eval_episodes": episodes})
        self._target, self._say = math.inf if target is None else target, say
        self.evaluations: list[list[float]] = []
        self.seconds = 0.0
        self._since = self._said = time.monotonic()
        self._evaluate: Callable[[], Evaluation] | None = None

    @property
    def is_done(self) -> bool:
        """Whether the score that ends the run was reached."""
        return any(value >= self._target for _, _, value in self.evaluations)

    def begin(self) -> None:
        """Count seconds from here, and intervals from the step of the checkpoint."""
        self._since = time.monotonic()
        self._every = Every(self._config.train.eval_every, self.run.progress.step)
        self._evaluate = evaluator(self._config, self.run.policy, None)
        self._tell(self.run.progress.step)

    def after_iteration(self, report: IterationReport) -> None:
        """Evaluate if it is due or the run ends."""
        self._count()
        step = report.progress.step
        if self._every.is_due(step) or self._is_last(report):
            assert self._evaluate is not None
            evaluation = self._evaluate()
            self._since = time.monotonic()
            report.metrics.update(evaluation.summary(self._config.train.cvar_alpha))
            value = score(evaluation, self._config.train)
            if value is not None:
                self.evaluations.append([step, self.seconds, value])
            self._tell(step)
            if self.is_done:
                self.run.stop(f"the score {self._target:g} is reached")
        elif time.monotonic() - self._said > HEARTBEAT_S:
            self._tell(step)

    def state(self) -> dict[str, Any]:
        """The evaluations and the seconds so far."""
        return {"evaluations": self.evaluations, "seconds": self.seconds}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore the evaluations and the seconds."""
        self.evaluations = [list(map(float, one)) for one in state["evaluations"]]
        self.seconds = float(state["seconds"])

    def _tell(self, step: int) -> None:
        self._said = time.monotonic()
        self._say({"step": step, "evaluations": self.evaluations})

    def _count(self) -> None:
        now = time.monotonic()
        self.seconds, self._since = self.seconds + now - self._since, now


def run_finals(
    pool: Pool, jobs: Mapping[int, Sequence[Job]], say: Callable[[str, str], None]
) -> dict[int, list[dict[str, Any]]]:
    """The best trials once more, with other seeds: the best of many noisy scores is partly luck.

    The results of the jobs of each trial, in their order; a trial of which a run fails is left out.
    """
    trial_of = {job.name: number for number, own in jobs.items() for job in own}
    results: dict[str, dict[str, Any]] = {}
    deaths: Counter[int] = Counter()
    failed: set[int] = set()
    for own in jobs.values():
        for job in own:
            pool.submit(job)
    for event in pool.events():
        number = trial_of[event.job.name]
        if event.progress is not None:
            continue
        if event.death:
            deaths[number] += 1
            say(event.job.name, f"{event.death}; started again")
        if event.error is not None or deaths[number] >= MOST_DEATHS:
            failed.add(number)
            say(event.job.name, f"failed in the finals: {event.error or event.death}")
            for job in jobs[number]:
                pool.stop(job.name)
        elif event.is_last:
            results[event.job.name] = event.result
    return {number: [results[job.name] for job in own] for number, own in jobs.items() if number not in failed}
