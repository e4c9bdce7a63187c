"""The run directory: config, metrics, checkpoints, log, and a lock against a second process."""

import errno
import fcntl
import logging
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from surefoot.core.config import Config
from surefoot.core.errors import CheckpointError, DirectoryInUseError, RunDirectoryError
from surefoot.core.files import AppendedFile, open_own
from surefoot.core.layers import to_yaml
from surefoot.training.checkpoint import TEMPORARY_SUFFIX, read_checkpoint, write_atomically, write_checkpoint

_log = logging.getLogger("surefoot")
_PATTERN = re.compile(r"step_(\d+)\.safetensors")
_WRITTEN = r"config\.yaml|best\.safetensors|step_\d+\.(?:safetensors|mp4|gif)|nonfinite_step_\d+\.json"
_LEFTOVER = re.compile(rf"\.(?:{_WRITTEN})\.(\d+){re.escape(TEMPORARY_SUFFIX)}")
"""Temporary files of a process that was killed while it wrote; all other files belong to the user."""


class RunDirectory:
    """A context manager that holds the lock and keeps the log file open."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config_file = path / "config.yaml"
        self.metrics_file = path / "metrics.jsonl"
        self.evaluations_file = path / "evaluations.jsonl"
        self.log_file = path / "log.txt"
        self.best = path / "best.safetensors"
        self.checkpoints = path / "checkpoints"
        self.videos = path / "videos"
        self._lock: IO[str] | None = None
        self._owner = os.getpid()
        self._config: bytes | None = None
        self._handler: logging.Handler | None = None

    @staticmethod
    def unused(parent: Path, name: str) -> "RunDirectory":
        """The first of name, name-2, name-3, ... that does not exist yet."""
        stem = folder_name(name)
        candidate, number = parent / stem, 1
        while candidate.exists():
            number += 1
            candidate = parent / f"{stem}-{number}"
        return RunDirectory(candidate)

    @property
    def holds_run(self) -> bool:
        """Whether a run has been started here."""
        return os.path.isfile(self.config_file)  # pathlib's raises if the directory is not accessible

    @property
    def has_begun(self) -> bool:
        """Whether training has begun: the checkpoint of the start comes before the first metrics."""
        return bool(self.saved()) or (self.metrics_file.is_file() and self.metrics_file.stat().st_size > 0)

    def __enter__(self) -> "RunDirectory":
        try:
            self._open()
        except OSError as error:
            self.__exit__()
            raise self._not_writable(error) from error
        except ValueError as error:  # a null byte in the name
            raise RunDirectoryError(
                f"{str(self.path)!r} cannot be a run directory ({error}); choose another"
            ) from error
        return self

    def _open(self) -> None:
        self._owner = os.getpid()
        self.checkpoints.mkdir(parents=True, exist_ok=True)
        self._lock = take_lock(self.path)
        self._remove_leftovers()
        self._handler = _LogFile(self.log_file)
        self._handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        _log.addHandler(self._handler)
        _log.setLevel(logging.INFO)

    def __exit__(self, *exception: object) -> None:
        if self._handler is not None:
            _log.removeHandler(self._handler)
            self._handler.close()
        self._release_lock()

    def _release_lock(self) -> None:
        if self._lock is not None:
            with suppress(OSError):  # closing flushes data that a full disk rejected before
                self._lock.close()

    def write_config(self, config: Config) -> None:
        """Write the complete config, from which the run can be repeated."""
        self._config = to_yaml(config).encode()
        try:
            write_atomically(self.config_file, self._config)
        except OSError as error:
            raise self._not_writable(error) from error

    def begin(self, step: int, state: dict[str, Any]) -> None:
        """Save the start of a new run, so that it can be resumed whenever it is killed."""
        if not self.saved():
            try:
                self.save(step, state, keep=1)
            except OSError as error:
                raise self._not_writable(error) from error

    def save(self, step: int, state: dict[str, Any], keep: int) -> None:
        """Write a checkpoint and delete the oldest beyond `keep`, and that of the start."""
        self.refuse_fork()
        self._create_again()
        new = self.checkpoints / f"step_{step:012d}.safetensors"
        write_checkpoint(new, state)
        # Damaged checkpoints that a resume skipped may have higher steps.
        others = [path for path in self.saved() if path != new]
        for number, old in enumerate(others):
            if number >= keep - 1 or _step(old) == 0:
                old.unlink()

    def refuse_fork(self) -> None:
        """A forked process inherits the lock, so the lock does not keep it out."""
        if os.getpid() != self._owner:
            raise RunDirectoryError(
                f"the run in {self.path} belongs to process {self._owner} and cannot continue in a forked process; an"
                " env or hook called os.fork and its child returned: end the child with os._exit, or use subprocess"
            )

    def _create_again(self) -> None:
        """Create what somebody deleted: a run is not lost with its directory."""
        if self.config_file.exists() or self._config is None:
            return
        self.checkpoints.mkdir(parents=True, exist_ok=True)
        self._release_lock()
        self._lock = take_lock(self.path)
        write_atomically(self.config_file, self._config)
        _log.warning("%s was deleted and is created again; its earlier metrics and log are lost", self.path)

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

    def forget_checkpoints(self) -> None:
        """Delete the periodic checkpoints: the run continues from a state that is kept elsewhere."""
        for path in self.saved():
            path.unlink()

    def refuse_other_run(self, step: int) -> None:
        """Reject an agent that does not continue the run in this directory: it would mix two runs."""
        newest = max(map(_step, self.saved()), default=0)
        if self.holds_run and step == newest == 0:
            raise RunDirectoryError(
                f"{self.path} already contains a run that is at its start; continue it with 'surefoot resume"
                f" {self.path}', or choose another directory"
            )
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
        """Names the file if something else is in its place."""
        name = error.filename2 or error.filename
        file = None if name is None else Path(os.fsdecode(name))
        is_blocked = file is not None and file.parent == self.path and os.path.lexists(file)
        if is_blocked and error.errno != errno.EROFS:
            return RunDirectoryError(
                f"cannot write {file} ({error.strerror}); move it away or choose another directory with --run-dir"
            )
        return RunDirectoryError(
            f"the run directory {self.path} is not writable ({error.strerror}); choose another with --run-dir"
        )

    def _remove_leftovers(self) -> None:
        for folder in (self.path, self.checkpoints, self.videos):
            for file in folder.glob(f".*{TEMPORARY_SUFFIX}"):
                named = _LEFTOVER.fullmatch(file.name)
                if named is not None and _is_gone(int(named[1])):
                    with suppress(OSError):
                        file.unlink()


def folder_name(name: str) -> str:
    """The name of a run as that of a folder: `ALE/Pong-v5` and `./my_env.so` have characters that it cannot have."""
    return re.sub(r"[^\w.+-]+", "_", name).lstrip("._").removesuffix(".so") or "run"


def take_lock(folder: Path) -> IO[str]:
    """The lock of a directory, until it is closed; an error if another process has it."""
    lock = os.fdopen(open_own(folder / "lock", os.O_RDWR), "r+", encoding="utf-8")
    try:
        # The kernel releases this lock when its process dies, so there are no stale locks.
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.seek(0)
        holder = lock.read().strip() or "unknown"
        lock.close()
        raise DirectoryInUseError(
            f"the run directory {folder} is in use by process {holder}; stop it or choose another with --run-dir"
        ) from error
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()
    return lock


def _step(checkpoint: Path) -> int:
    return int(checkpoint.stem.removeprefix("step_"))


def _is_gone(process: int) -> bool:
    """Whether nobody can still be writing; this process has not begun to write."""
    if process == os.getpid():
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except PermissionError:
        return False
    return False


class _LogFile(logging.Handler):
    """A log file that drops lines when the disk is full, without a traceback per line on the terminal."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._file = AppendedFile(path)

    def emit(self, record: logging.LogRecord) -> None:
        """Append a line."""
        with suppress(Exception):
            self._file.write(self.format(record) + "\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()
