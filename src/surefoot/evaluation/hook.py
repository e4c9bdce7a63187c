"""Evaluation during training: logs the score and saves the best policy."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from surefoot.core.errors import EnvError, SurefootError
from surefoot.core.failures import brief
from surefoot.core.records import IterationReport
from surefoot.evaluation.best_metric import MEAN_REWARD, score
from surefoot.evaluation.evaluate import Evaluation
from surefoot.telemetry import names
from surefoot.training.checkpoint import write_checkpoint
from surefoot.training.hooks import Every, Hook

_log = logging.getLogger("surefoot")


class EvaluateAndKeepBest(Hook):
    """Evaluates at an interval of steps and at the end."""

    def __init__(
        self,
        evaluate: Callable[[], Evaluation],
        state: Callable[[], dict[str, Any]],
        every: int,
        start: int,
        best_file: Path | None,
        best: float | None = None,
        best_metric: str = MEAN_REWARD,
    ) -> None:
        super().__init__()
        self._evaluate, self._run_state, self._best_metric = evaluate, state, best_metric
        self._interval, self._every = every, Every(every, start)
        self._best_file = best_file
        self.best = best
        self.last: Evaluation | None = None

    @property
    def best_state(self) -> dict[str, Any]:
        """For checkpoints: the best score, and its metric."""
        return {"best_score": self.best, "best_metric": self._best_metric}

    def go_on_from(self, step: int) -> None:
        """Count the intervals from this step, like the run that is resumed."""
        self._every = Every(self._interval, step)

    def after_iteration(self, report: IterationReport) -> None:
        """Evaluate if it is due; an env error during evaluation causes a warning and does not end the run."""
        if not (self._every.is_due(report.progress.step) or self._is_last(report)):
            return
        try:
            self.last = evaluation = self._evaluate()
        except EnvError as error:
            _log.warning("evaluation failed: %s", error)
            return
        _log.info("evaluation at step %d: mean reward %.3f", report.progress.step, evaluation.mean_reward)
        report.metrics[names.EVAL_REWARD] = evaluation.mean_reward
        report.metrics[names.EVAL_REWARD_STD] = evaluation.std_reward
        report.metrics[names.EVAL_LENGTH] = evaluation.mean_ep_length
        for name in evaluation.metrics:
            mean = evaluation.mean_metric(name)
            if mean is not None:
                report.metrics[names.EVAL_PREFIX + name] = mean
        self._compare(evaluation)

    def _compare(self, evaluation: Evaluation) -> None:
        value = score(evaluation, self._best_metric)
        if value is None:
            _log.warning("no evaluated episode has a value for '%s'; the best policy is unchanged", self._best_metric)
        elif self.best is None or value > self.best:
            self._keep(value)

    def _keep(self, score: float) -> None:
        previous, self.best = self.best, score
        if self._best_file is None:
            return
        try:
            write_checkpoint(self._best_file, self._run_state())
        except (OSError, MemoryError, SurefootError) as error:
            # The best score stays that of the file.
            self.best = previous
            _log.warning("best policy not saved: %s", getattr(error, "strerror", None) or brief(error))
