"""Goes back to the last good state: after updates that produce NaN, and after an error in the middle of an update."""

import logging
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from surefoot.data.records import IterationReport, Rollout
from surefoot.errors import NonFiniteError
from surefoot.settings.config import Config
from surefoot.storage.snapshot import go_back, snapshots
from surefoot.telemetry import names
from surefoot.training.hooks import Hook
from surefoot.training.nonfinite_dump import write_dump
from surefoot.training.reporting import metrics_of
from surefoot.training.stateful import KEPT, LEARNED
from surefoot.training.trainer import Trainer

_log = logging.getLogger("surefoot")

FORGIVEN_AFTER = 100
"""Number of good iterations that resets the count of rollbacks."""
_REMEMBERED = 10


class RollBack(Hook):
    """The first hook, so that later hooks evaluate, report and save only finite weights.

    The learner skips steps whose gradient is not finite. This hook handles what skipping cannot fix: many consecutive
    skips, or weights and statistics that are not finite.
    """

    def __init__(self, trainer: Trainer, config: Config, folder: Path | None) -> None:
        super().__init__()
        self._trainer, self._config, self._folder = trainer, config, folder
        self._good = self._snapshots()
        self._is_learning = False
        self._recent: deque[IterationReport] = deque(maxlen=_REMEMBERED)
        self._streak = self._rollbacks = self._good_iterations = 0

    def after_rollout(self, rollout: Rollout) -> None:
        """From here until the end of the iteration, the states do not fit together."""
        self._is_learning = True

    def undo_update(self) -> None:
        """Go back to the last good iteration if an error interrupted this one: its update may be half done."""
        if self._is_learning:
            self._is_learning = False
            go_back(self._trainer.stateful(), self._good, KEPT)
            self._trainer.collector.rows.abandon()

    def after_iteration(self, report: IterationReport) -> None:
        """Keep a copy of good weights; roll back bad ones."""
        self._is_learning = False
        self._recent.append(report)
        now = self._snapshots()
        trouble = self._trouble(report.learned.skips, now["policy"].is_finite)
        if trouble is None:
            self._keep(report, now)
            return
        self._streak = 0
        step, limit = report.progress.step, self._config.train.max_rollbacks
        dump = self._dump(step, trouble) if self._rollbacks == limit else None
        # Also before the error, so that a final checkpoint has good weights.
        self._go_back()
        if self._rollbacks == limit:
            again = f" again, after {limit} rollback{'s' * (limit > 1)} to the last good weights" if limit else ""
            where = f"; {dump} describes the weights, the data and the last iterations" if dump else ""
            raise NonFiniteError(
                f"{trouble} at step {step}{again}; lower optimizer.lr ({self._config.optimizer.lr:g}) or check your own"
                f" modules for NaN{where}"
            )
        self._rollbacks, self._good_iterations = self._rollbacks + 1, 0
        report.metrics[names.ROLLBACKS] = float(self._rollbacks)
        _log.warning("%s at step %d; rolled back to the last good weights and statistics", trouble, step)

    def _snapshots(self) -> dict[str, Any]:
        """Everything that scoring and learning change: weights, statistics, moments, terms, counters."""
        stateful = self._trainer.stateful()
        return snapshots({name: stateful[name] for name in KEPT})

    def _trouble(self, skips: Iterable[bool], is_finite: bool) -> str | None:
        """The problem, if any; consecutive skipped steps are counted across updates."""
        longest = 0
        for is_skipped in skips:
            self._streak = self._streak + 1 if is_skipped else 0
            longest = max(longest, self._streak)
        if not is_finite:
            return "the weights or statistics are not finite after the update"
        if longest >= self._config.train.max_skipped_steps:
            return f"{longest} consecutive gradient steps were not finite"
        return None

    def _keep(self, report: IterationReport, now: dict[str, Any]) -> None:
        if report.learned.skipped_steps == 0:
            self._good = now
            self._good_iterations += 1
        if self._good_iterations >= FORGIVEN_AFTER:
            self._rollbacks = 0

    def _go_back(self) -> None:
        # Without the reward scaler: it only sees rewards, which are checked when they are received.
        go_back(self._trainer.stateful(), self._good, LEARNED)
        rows = self._trainer.collector.rows
        if not all(bool(tensor.isfinite().all()) for tensor in rows.memory):
            rows.restart()

    def _dump(self, step: int, trouble: str) -> Path | None:
        if self._folder is None:
            return None
        recent = [metrics_of(report, 0.0) for report in self._recent]
        return write_dump(self._folder, step, trouble, self._trainer, recent)
