"""Periodic checkpoints: a full disk causes a warning and does not end the run."""

import logging
from collections.abc import Callable
from typing import Any

from surefoot.data.records import IterationReport, Rollout
from surefoot.errors import RunDirectoryError
from surefoot.machine.ranks import ALONE, Ranks
from surefoot.output.failures import brief
from surefoot.training.hooks import Every, Hook
from surefoot.training.run_directory import RunDirectory

_log = logging.getLogger("surefoot")


class SaveCheckpoints(Hook):
    """Saves at an interval of steps, retries after a failure, and always saves at the end.

    Of several processes only the first one has a directory; the others contribute the states of their rows.
    """

    def __init__(
        self,
        run: RunDirectory | None,
        state: Callable[[], dict[str, Any]],
        every: int,
        keep: int,
        start: int,
        ranks: Ranks = ALONE,
    ) -> None:
        super().__init__()
        self._directory, self._state, self._keep, self._ranks = run, state, keep, ranks
        self._every = Every(every, start)
        self._is_due = False
        self._failure = ""
        self.is_asked = False
        """Set to save after this iteration, regardless of the interval."""
        self._saved_step: int | None = None

    def after_rollout(self, rollout: Rollout) -> None:
        """A child that an env has forked ends here, before it writes anything."""
        if self._directory is not None:
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
        if not self.save(step, again=True) and self._saved_step != step and self._directory is not None:
            raise RunDirectoryError(
                f"the run ended at step {step}, but the checkpoint could not be saved in {self._directory.path}"
                f" ({self._failure}); older checkpoints are intact: remove the cause and resume from there"
            )

    def save(self, step: int, again: bool = False) -> bool:
        """Save now, unless this step is already saved; returns False if writing failed."""
        is_new = step != self._saved_step
        if not (is_new or again):
            return True
        failure = self._write(step)
        if failure:
            is_first, self._failure = not self._failure, failure
            if is_first and self._directory is not None:
                _log.warning(
                    "checkpoint at step %d not saved (%s); will retry, training continues", step, self._failure
                )
            return False
        if self._failure and self._directory is not None:
            _log.warning("checkpoint at step %d saved after retrying", step)
        if is_new and self._directory is not None:
            _log.info("saved a checkpoint at step %d", step)
        self._failure, self._saved_step = "", step
        return True

    def _write(self, step: int) -> str:
        """Write a checkpoint; returns why it failed, the same in all processes."""
        failure = ""
        try:
            state = self._state()
            if self._directory is not None:
                self._directory.save(step, state, self._keep)
        except (OSError, MemoryError) as error:
            failure = getattr(error, "strerror", None) or brief(error)
        return self._ranks.gather(failure)[0]
