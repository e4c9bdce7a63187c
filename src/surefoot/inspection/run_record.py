"""The config, the metric records and the log of a run directory."""

import fcntl
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surefoot.errors import RunDirectoryError
from surefoot.inspection.seeds_folder import refuse_seeds_folder
from surefoot.settings.strict_yaml import parse_yaml
from surefoot.storage.files import open_regular, read_regular, readable_text
from surefoot.telemetry.records import Record, numbers_of, records_by_step

Series = list[tuple[int, float]]
_MOST_DIGITS = 100
"""Of a process in a lock file."""
_VERSIONS = re.compile(r"surefoot \S+, torch [^\s:]+")
_ROLLOUTS = re.compile(r" rollouts: (?:step by step, )?(\w+)(?: on \d+ threads| \(.*\))?$", re.MULTILINE)
_ERROR = re.compile(r" INFO ended by an error: (.*)")
_REASON = re.compile(r" INFO stopped at step \d+: (.*)")
_COMMAND = re.compile(r" INFO command: (surefoot .*)")


class RunLog:
    """The text of a log; processes of a resumed run append to it, and what the last one said counts."""

    def __init__(self, text: str) -> None:
        self._text = text

    @property
    def versions(self) -> str | None:
        """The versions of Surefoot and PyTorch."""
        return _last(_VERSIONS, self._text)

    @property
    def engine(self) -> str | None:
        """The engine of the rollouts: the config may say `auto`."""
        return _last(_ROLLOUTS, self._text)

    @property
    def error(self) -> str | None:
        """The error that ended the last process."""
        return _last(_ERROR, self._of_last_process())

    @property
    def stop_reason(self) -> str | None:
        """Why a hook stopped the last process."""
        return _last(_REASON, self._of_last_process())

    @property
    def commands(self) -> list[str]:
        """What the user typed to start and to resume the run."""
        return _COMMAND.findall(self._text)

    def _of_last_process(self) -> str:
        return self._text[max((found.start() for found in _VERSIONS.finditer(self._text)), default=0) :]


@dataclass(frozen=True)
class RunRecord:
    """A recorded run; records are sorted by step, one per step."""

    path: Path
    config: dict[str, Any]
    records: list[Record]

    @property
    def name(self) -> str:
        """The name of the directory."""
        return self.path.resolve().name

    @property
    def log(self) -> RunLog:
        """The log of all processes of the run; empty if there is none."""
        return RunLog(readable_text(self.path / "log.txt"))

    def series(self, metric: str) -> Series:
        """(step, value) of each record that has the metric."""
        return [(int(record["step"]), record[metric]) for record in self.records if metric in record]


def read_run(path: Path) -> RunRecord:
    """Read a run directory; the run may still be in progress, or may have been killed."""
    config_file, metrics_file = path / "config.yaml", path / "metrics.jsonl"
    if not path.is_dir():
        raise RunDirectoryError(
            f"the directory {path} does not exist; pass the run directory that 'surefoot train' printed"
        )
    refuse_seeds_folder(path)
    if not os.path.isfile(config_file):  # pathlib's raises if the directory is not accessible
        raise RunDirectoryError(
            f"{path} is not a run directory (it has no config.yaml); pass the one that 'surefoot train' printed"
        )
    if not os.path.isfile(metrics_file):
        raise RunDirectoryError(f"{path} has no metrics.jsonl yet; {_why_not(path)}")
    try:
        config = parse_yaml(read_regular(config_file).decode())
    except (OSError, ValueError) as error:  # ValueError: not YAML, or not UTF-8
        raise RunDirectoryError(f"{config_file} cannot be read: {error}") from error
    return RunRecord(path, config if isinstance(config, dict) else {}, _read_records(metrics_file))


def _last(pattern: re.Pattern[str], text: str) -> str | None:
    found: list[str] = pattern.findall(text)
    return found[-1] if found else None


def _read_records(path: Path) -> list[Record]:
    by_step = records_by_step(path, numbers_of)
    if not by_step:
        raise RunDirectoryError(f"{path} has no records yet; {_why_not(path.parent)}")
    return list(by_step.values())


def _why_not(path: Path) -> str:
    if lock_holder(path) is None:
        return "the run ended before its first iteration finished; see log.txt for the cause"
    return "wait for the first iteration to finish"


def lock_holder(path: Path) -> str | None:
    """The process that holds the lock of a run directory; the kernel releases the lock of a process that died."""
    try:
        with open_regular(path / "lock") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return lock.read(_MOST_DIGITS).decode(errors="replace").strip() or "unknown"
    except OSError:
        return None
    return None
