"""Periodic checkpoints: a full disk causes a warning and does not end the run."""

import logging
from collections.abc import Callable
from typing import Any

from surefoot.core.errors import RunDirectoryError
from surefoot.core.failures import brief
from surefoot.core.records import IterationReport, Rollout
from surefoot.training.hooks import Every, Hook
from surefoot.training.run_directory import RunDirectory

_log = logging.getLogger("surefoot")


class SaveCheckpoints(Hook):
    """Saves at an interval of steps, retries after a failure, and always saves at the end."""

    def __init__(
        self, run: RunDirectory, state: Callable[[], dict[str, Any]], every: int, keep: int, start: int
    ) -> None:
        super().__init__()
        self._directory, self._state, self._keep = run, state, keep
        self._every = Every(every, start)
        self._is_due = False
        self._failure = ""
        self.is_asked = False
        """Set to save after this iteration, regardless of the interval."""
        self._saved_step: int | None = None

    def after_rollout(self, rollout: Rollout) -> None:
        """A child that an env has forked ends here, before it writes anything."""
        self._directory.refuse_fork()

    def after_iteration(self, report: IterationReport) -> None:
        """Save if a checkpoint is due, if the last attempt failed, or at the end: what follows may fail."""
        is_wanted = self.is_asked or self._is_last(report)
        self._is_due = self._every.is_due(report.progress.step) or self._is_due or is_wanted
        self.is_asked = False
        # After an update with skipped steps the weights may be diverging: keep the older checkpoint.
        if self._is_due and not report.learned.skipped_steps:
            self._is_due = not self.save(report.progress.step)

    def finish(self, step: int) -> None:
        """Save the final checkpoint, with what hooks and the last evaluation changed; a failure is an error."""
        if not self.save(step, again=True) and self._saved_step != step:
            raise RunDirectoryError(
                f"the run ended at step {step}, but the checkpoint could not be saved in {self._directory.path}"
                f" ({self._failure}); older checkpoints are intact: remove the cause and resume from there"
            )

    def save(self, step: int, again: bool = False) -> bool:
        """Save now, unless this step is already saved; returns False if writing failed."""
        is_new = step != self._saved_step
        if not (is_new or again):
            return True
        try:
            self._directory.save(step, self._state(), self._keep)
        except (OSError, MemoryError) as error:
            is_first, self._failure = not self._failure, getattr(error, "strerror", None) or brief(error)
            if is_first:
                _log.warning(
                    "checkpoint at step %d not saved (%s); will retry, training continues", step, self._failure
                )
            return False
        if self._failure:
            _log.warning("checkpoint at step %d saved after retrying", step)
        if is_new:
            _log.info("saved a checkpoint at step %d", step)
        self._failure, self._saved_step = "", step
        return True
