"""The config and the metric records of a run directory."""

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surefoot.errors import RunDirectoryError
from surefoot.inspection.run_record import RunLog
from surefoot.inspection.seeds_folder import refuse_seeds_folder
from surefoot.settings.strict_yaml import parse_yaml
from surefoot.storage.files import open_regular, read_regular, readable_text
from surefoot.telemetry.records import Record, numbers_of, records_by_step

Series = list[tuple[int, float]]
_MOST_DIGITS = 100
"""Of a process in a lock file."""


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
