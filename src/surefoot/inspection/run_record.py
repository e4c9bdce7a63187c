"""The config and the metric records of a run directory."""

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surefoot.core.errors import RunDirectoryError
from surefoot.core.strict_yaml import parse_yaml
from surefoot.inspection.run_log import RunLog
from surefoot.inspection.seeds_folder import refuse_seeds_folder
from surefoot.telemetry.records import Record, numbers_of, records_by_step

Series = list[tuple[int, float]]


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
        file = self.path / "log.txt"
        if not os.path.isfile(file):  # a named pipe would block forever
            return RunLog("")
        try:
            return RunLog(file.read_text(encoding="utf-8", errors="replace"))
        except OSError:
            return RunLog("")

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
        config = parse_yaml(config_file.read_text(encoding="utf-8"))
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
        with (path / "lock").open(encoding="utf-8") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return lock.read().strip() or "unknown"
    except OSError:
        return None
    return None
