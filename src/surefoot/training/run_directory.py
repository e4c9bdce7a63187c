"""The run directory: config, metrics, checkpoints, log, and a lock against a second process."""

import errno
import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from surefoot.errors import CheckpointError, RunDirectoryError
from surefoot.settings.config import Config
from surefoot.settings.layers import to_yaml
from surefoot.storage.files import AppendedFile
from surefoot.storage.folder_lock import take_lock
from surefoot.storage.run_folder import RUN, refuse_other_kind, refuse_remains
from surefoot.storage.saved import Saved
from surefoot.telemetry.records import lines_until, records_by_step
from surefoot.training.checkpoint import TEMPORARY_SUFFIX, read_checkpoint, write_atomically, write_checkpoint

_log = logging.getLogger("surefoot")
_PATTERN = re.compile(r"step_(\d+)\.safetensors")
_WRITTEN = (
    r"config\.yaml|(?:metrics|evaluations)\.jsonl|best\.safetensors|step_\d+\.(?:safetensors|mp4|gif)"
    r"|nonfinite_step_\d+\.json"
)
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
        """Whether training has begun: the checkpoint of the start comes before metrics and a best policy."""
        has_metrics = self.metrics_file.is_file() and self.metrics_file.stat().st_size > 0
        return bool(self.saved()) or has_metrics or self.best.exists()

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
        self._write(self.config_file, self._config)

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

    def rewind(self, step: int, is_evaluated: bool = True) -> None:
        """Cut the records back to the step of the checkpoint that a run continues from: later steps come again.

        If a kill prevented the evaluation of this step, its records are not complete and are removed as well.
        """
        last = step if is_evaluated else step - 1
        for file in (self.metrics_file, self.evaluations_file):
            if _is_regular(file) and (kept := lines_until(file, last).encode()) != file.read_bytes():
                self._write(file, kept)

    @contextmanager
    def taking_over(self, other: "RunDirectory", name: str, state: dict[str, Any], step: int) -> Iterator[None]:
        """Begin with a checkpoint of another run, its records up to there, and its best policy if that is not newer.

        After an error inside, nothing of it is left.
        """
        try:
            self._take_over(other, name, state, step)
            yield
        except BaseException:
            for file in (self.metrics_file, self.evaluations_file, self.best, self.checkpoints / name):
                file.unlink(missing_ok=True)
            raise

    def _take_over(self, other: "RunDirectory", name: str, state: dict[str, Any], step: int) -> None:
        for source, file in (
            (other.metrics_file, self.metrics_file),
            (other.evaluations_file, self.evaluations_file),
        ):
            if _is_regular(source):
                self._write(file, lines_until(source, step).encode())
        try:
            with suppress(CheckpointError):
                best = read_checkpoint(other.best)
                if Saved(best)["progress"]["step"].integer() <= step:
                    write_checkpoint(self.best, best)
            write_checkpoint(self.checkpoints / name, state)
        except OSError as error:
            raise self._not_writable(error) from error

    def _write(self, file: Path, data: bytes) -> None:
        try:
            write_atomically(file, data)
        except OSError as error:
            raise self._not_writable(error) from error

    def has_record(self, step: int) -> bool:
        """Whether the metrics have a line of this step."""
        return _is_regular(self.metrics_file) and step in records_by_step(self.metrics_file, dict)

    def has_saved(self, step: int) -> bool:
        """Whether there is a checkpoint of this step."""
        return step in map(_step, self.saved())

    def saved_at(self, step: int) -> Path:
        """The checkpoint of a step, or an error that names those that exist."""
        by_step = {_step(path): path for path in reversed(self.saved())}
        if step in by_step:
            return by_step[step]
        has = f"it has steps {', '.join(map(str, by_step))}" if by_step else "it has none"
        raise CheckpointError(
            f"{self.path} has no checkpoint of step {step}; {has} (train.keep_checkpoints sets how many are kept)"
        )

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
        refuse_other_kind(self.path, RUN)
        refuse_remains(self.path)
        saved = self.saved()
        newest = _step(saved[0]) if saved else 0
        if self.holds_run and step == newest == 0:
            raise RunDirectoryError(
                f"{self.path} already contains a run that is at its start; continue it with 'surefoot resume"
                f" {self.path}', or choose another directory"
            )
        if self.holds_run and (step == 0 or newest > step):
            raise RunDirectoryError(
                f"{self.path} already contains a run at step {newest}, and this agent is at step {step}"
                f"{' (PPO.load takes the best policy of a directory)' if step else ''}; to continue the run, load"
                f" '{saved[0]}', or choose another directory"
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


def _is_regular(path: Path) -> bool:
    """Whether it is a file and no link: nothing else is read or replaced."""
    return os.path.isfile(path) and not os.path.islink(path)


def folder_name(name: str) -> str:
    """The name of a run as that of a folder: `ALE/Pong-v5` and `./my_env.so` have characters that it cannot have."""
    return re.sub(r"[^\w.+-]+", "_", name).lstrip("._").removesuffix(".so") or "run"


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
