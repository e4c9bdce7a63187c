"""The run directory: config, metrics, checkpoints, log, and a lock against a second process."""

import fcntl
import logging
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from surefoot.core.config import Config
from surefoot.core.errors import CheckpointError, RunDirectoryError
from surefoot.core.layers import to_yaml
from surefoot.training.checkpoint import TEMPORARY_SUFFIX, read_checkpoint, write_atomically, write_checkpoint

_log = logging.getLogger("surefoot")
_PATTERN = re.compile(r"step_(\d+)\.safetensors")


class RunDirectory:
    """A context manager that holds the lock and keeps the log file open."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config_file = path / "config.yaml"
        self.metrics_file = path / "metrics.jsonl"
        self.log_file = path / "log.txt"
        self.best = path / "best.safetensors"
        self.checkpoints = path / "checkpoints"
        self._lock: IO[str] | None = None
        self._handler: logging.Handler | None = None

    @staticmethod
    def unused(parent: Path, name: str) -> "RunDirectory":
        """The first of name, name-2, name-3, ... that does not exist yet."""
        stem = re.sub(r"[^\w.+-]+", "_", name).lstrip("._").removesuffix(".so") or "run"
        candidate, number = parent / stem, 1
        while candidate.exists():
            number += 1
            candidate = parent / f"{stem}-{number}"
        return RunDirectory(candidate)

    @property
    def holds_run(self) -> bool:
        """Whether a run has been started here."""
        return os.path.exists(self.config_file)  # pathlib's raises if the directory is not accessible

    def __enter__(self) -> "RunDirectory":
        try:
            self._open()
        except OSError as error:
            self.__exit__()
            raise self._not_writable(error) from error
        return self

    def _open(self) -> None:
        self.checkpoints.mkdir(parents=True, exist_ok=True)
        lock = (self.path / "lock").open("a+", encoding="utf-8")
        try:
            # The kernel releases this lock when its process dies, so there are no stale locks.
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock.seek(0)
            holder = lock.read().strip() or "unknown"
            lock.close()
            raise RunDirectoryError(
                f"the run directory {self.path} is in use by process {holder}; stop it or choose another with --run-dir"
            ) from error
        self._lock = lock
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        self._remove_leftovers()
        self._handler = _LogFile(self.log_file, encoding="utf-8")
        self._handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        _log.addHandler(self._handler)
        _log.setLevel(logging.INFO)

    def __exit__(self, *exception: object) -> None:
        # Closing flushes data that a full disk rejected before.
        if self._handler is not None:
            _log.removeHandler(self._handler)
            with suppress(OSError):
                self._handler.close()
        if self._lock is not None:
            with suppress(OSError):
                self._lock.close()

    def write_config(self, config: Config) -> None:
        """Write the complete config, from which the run can be repeated."""
        try:
            write_atomically(self.config_file, to_yaml(config).encode())
        except OSError as error:
            raise self._not_writable(error) from error

    def save(self, step: int, state: dict[str, Any], keep: int) -> None:
        """Write a periodic checkpoint and delete the oldest beyond `keep`."""
        new = self.checkpoints / f"step_{step:012d}.safetensors"
        write_checkpoint(new, state)
        # Damaged checkpoints that a resume skipped may have higher steps.
        for old in [path for path in self.saved() if path != new][keep - 1 :]:
            old.unlink()

    def saved(self) -> list[Path]:
        """Periodic checkpoints, newest first."""
        found = [path for path in self.checkpoints.glob("step_*.safetensors") if _PATTERN.fullmatch(path.name)]
        return sorted(found, reverse=True)

    def newest(self) -> tuple[Path, dict[str, Any]]:
        """The newest readable checkpoint, or an error if there is none."""
        candidates = self.saved()
        for path in candidates:
            try:
                return path, read_checkpoint(path)
            except CheckpointError as error:
                _log.warning("%s; trying the previous checkpoint", error)
        if candidates:
            raise CheckpointError(f"none of the {len(candidates)} checkpoints in {self.checkpoints} is readable")
        raise CheckpointError(f"{self.checkpoints} has no checkpoint to resume from")

    def refuse_other_run(self, step: int) -> None:
        """Reject an agent that does not continue the run in this directory: it would mix two runs."""
        newest = max((int(path.stem.removeprefix("step_")) for path in self.saved()), default=0)
        if self.holds_run and (step == 0 or newest > step):
            raise RunDirectoryError(
                f"{self.path} already contains a run at step {newest}; load its newest checkpoint to continue it,"
                " or choose another directory"
            )

    def best_score(self, metric: str) -> float | None:
        """The score of the best policy so far by a metric (train.best_metric), if any."""
        if not self.best.exists():
            return None
        try:
            saved = read_checkpoint(self.best)
        except CheckpointError as error:
            _log.warning("%s; the next evaluation replaces it", error)
            return None
        chosen_by = saved.get("best_metric", "mean_reward")
        if chosen_by != metric:
            _log.warning(
                "the best policy was chosen by %s, but train.best_metric is %s now; the next evaluation replaces it",
                *(chosen_by, metric),
            )
            return None
        score = saved.get("best_score")
        if score is not None and not isinstance(score, float | int):
            _log.warning("%s has no valid score; the next evaluation replaces it", self.best)
            return None
        return score

    def _not_writable(self, error: OSError) -> RunDirectoryError:
        return RunDirectoryError(
            f"the run directory {self.path} is not writable ({error.strerror}); choose another with --run-dir"
        )

    def _remove_leftovers(self) -> None:
        for folder in (self.path, self.checkpoints):
            for leftover in folder.glob(f".*{TEMPORARY_SUFFIX}"):
                leftover.unlink(missing_ok=True)


class _LogFile(logging.FileHandler):
    """A log file that drops lines when the disk is full, without a traceback per line on the terminal."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Ignore the error."""
