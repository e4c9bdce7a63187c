"""Evaluation during training: logs the score and saves the best policy."""

import json
import logging
import math
from collections.abc import Callable
from contextlib import closing
from typing import Any

from surefoot.data.records import IterationReport
from surefoot.errors import EnvError, SurefootError
from surefoot.evaluation.evaluation import Evaluation, criterion, score, unreliable
from surefoot.output.failures import brief
from surefoot.settings.config import TrainConfig
from surefoot.storage.files import AppendedFile
from surefoot.training.checkpoint import write_checkpoint
from surefoot.training.hooks import Every, Hook
from surefoot.training.run_directory import RunDirectory

_log = logging.getLogger("surefoot")


class EvaluateAndKeepBest(Hook):
    """Evaluates at an interval of steps and at the end; in a run directory, keeps the returns and the best policy."""

    def __init__(
        self,
        evaluate: Callable[[], Evaluation],
        state: Callable[[], dict[str, Any]],
        train: TrainConfig,
        start: int,
        directory: RunDirectory | None = None,
    ) -> None:
        super().__init__()
        self._evaluate, self._run_state, self._train, self._directory = evaluate, state, train, directory
        self._every = Every(train.eval_every, start)
        self.best = None if directory is None else directory.best_score(criterion(train))
        self.last: Evaluation | None = None
        self.is_overdue = False
        """Whether the process was killed before it could evaluate."""
        self.late: dict[str, float] = {}
        """Metrics of an evaluation that was made up for."""
        self._evaluated_step = start

    @property
    def evaluation_state(self) -> dict[str, Any]:
        """For checkpoints: the best score, its metric, and whether the evaluation of this step is still to come."""
        is_due = self.is_overdue or (hasattr(self, "run") and self._is_due(self.run.progress.step, self.run.is_ending))
        return {"best_score": self.best, "best_metric": criterion(self._train), "evaluation_due": is_due}

    def go_on_from(self, step: int, is_overdue: bool) -> None:
        """Count the intervals from this step, like the run that is resumed, whose last evaluation may be missing."""
        self._every, self._evaluated_step = Every(self._train.eval_every, step), step
        self.is_overdue = is_overdue

    def begin(self) -> None:
        """Warn about a choice that is mostly chance; evaluate if the process was killed before it could."""
        if problem := unreliable(self._train):
            _log.warning("%s", problem)
        if self.is_overdue:
            self.late = self._score(self.run.progress.step)

    def after_iteration(self, report: IterationReport) -> None:
        """Evaluate if it is due."""
        step = report.progress.step
        if self._is_due(step, self._is_last(report)):
            self._every.is_due(step)
            report.metrics.update(self._score(step))

    def _is_due(self, step: int, is_last: bool) -> bool:
        return step != self._evaluated_step and (self._every.passes(step) or is_last)

    def _score(self, step: int) -> dict[str, float]:
        """The metrics of an evaluation; an env error during it causes a warning and does not end the run."""
        self._evaluated_step, self.is_overdue = step, False
        try:
            self.last = evaluation = self._evaluate()
        except EnvError as error:
            _log.warning("evaluation failed: %s", error)
            return {}
        _log.info("evaluation at step %d: mean reward %.3f", step, evaluation.mean_reward)
        self._write_returns(step, evaluation)
        self._compare(evaluation)
        return evaluation.summary(self._train.cvar_alpha)

    def _write_returns(self, step: int, evaluation: Evaluation) -> None:
        """Append the returns of single episodes, from which the report draws the distribution."""
        if self._directory is None:
            return
        record: dict[str, Any] = {"step": step, "rewards": evaluation.rewards}
        if evaluation.wins is not None:
            record["wins"] = [None if math.isnan(win) else win for win in evaluation.wins]
        if evaluation.are_identical:
            record["are_identical"] = True
        try:
            with closing(AppendedFile(self._directory.evaluations_file)) as file:
                file.write(json.dumps(record) + "\n")
        except OSError as error:
            _log.warning("returns of the evaluation at step %d not saved: %s", step, error.strerror or brief(error))

    def _compare(self, evaluation: Evaluation) -> None:
        value = score(evaluation, self._train)
        if value is None:
            _log.warning(
                "no evaluated episode has a value for '%s'; the best policy is unchanged", self._train.best_metric
            )
        elif self.best is None or value > self.best:
            self._keep(value)

    def _keep(self, score: float) -> None:
        previous, self.best = self.best, score
        if self._directory is None:
            return
        try:
            write_checkpoint(self._directory.best, self._run_state())
        except (OSError, MemoryError, SurefootError) as error:
            # The best score stays that of the file.
            self.best = previous
            _log.warning("best policy not saved: %s", getattr(error, "strerror", None) or brief(error))
