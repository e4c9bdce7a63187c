"""What a run directory tells about its run: the config and the metric records."""

import fcntl
import json
import math
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from surefoot.core.errors import RunDirectoryError

Record = dict[str, float]
Series = list[tuple[int, float]]

_ROLLOUTS = re.compile(r" rollouts: (?:step by step, )?(\w+)(?: on \d+ threads| \(.*\))?$", re.MULTILINE)


@dataclass(frozen=True)
class RunRecord:
    """A run as it was written down; records are in the order of their steps, one a step."""

    path: Path
    config: dict[str, Any]
    records: list[Record]

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.path.resolve().name

    @property
    def engine(self) -> str | None:
        """Who stepped the envs at last, as the log says: with `auto` the config does not; None if the log is silent."""
        try:
            found = _ROLLOUTS.findall((self.path / "log.txt").read_text(encoding="utf-8", errors="replace"))
        except OSError:
            return None
        return found[-1] if found else None

    def series(self, metric: str) -> Series:
        """(step, value) wherever the metric was recorded."""
        return [(int(record["step"]), record[metric]) for record in self.records if metric in record]


def read_run(path: Path) -> RunRecord:
    """Read a run directory; it may belong to a run that is still going on, or that was killed."""
    config_file, metrics_file = path / "config.yaml", path / "metrics.jsonl"
    if not path.is_dir():
        raise RunDirectoryError(f"there is no folder {path}; give the folder that 'train' printed")
    if not os.path.isfile(config_file):  # pathlib's raises where the folder may not be entered
        raise RunDirectoryError(f"{path} holds no run (it has no config.yaml); give the folder that 'train' printed")
    if not os.path.isfile(metrics_file):
        raise RunDirectoryError(f"{path} has no metrics.jsonl yet; {_why_not(path)}")
    try:
        config = yaml.safe_load(config_file.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        cause = " ".join(str(error).split())
        raise RunDirectoryError(f"{config_file} cannot be read: {cause}") from error
    return RunRecord(path, config if isinstance(config, dict) else {}, _read_records(metrics_file))


def _read_records(path: Path) -> list[Record]:
    """A killed run may leave half a line, and a resumed one repeats steps: what was written last counts."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise RunDirectoryError(f"{path} cannot be read: {error.strerror}") from error
    by_step: dict[int, Record] = {}
    for line in lines:
        try:
            record = _numbers(json.loads(line))
            step = int(record["step"])
        except (ValueError, KeyError, AttributeError, OverflowError):
            continue
        while by_step and next(reversed(by_step)) >= step:
            by_step.popitem()
        by_step[step] = record
    if not by_step:
        raise RunDirectoryError(f"{path} holds no record yet; {_why_not(path.parent)}")
    return list(by_step.values())


def _numbers(raw: dict[str, Any]) -> Record:
    """Finite numbers only: what else a line holds cannot be drawn or judged."""
    return {name: value for name, value in raw.items() if isinstance(value, int | float) and math.isfinite(value)}


def _why_not(path: Path) -> str:
    if lock_holder(path) is None:
        return "the run ended before its first iteration did, log.txt says how"
    return "wait for the first iteration to end"


def lock_holder(path: Path) -> str | None:
    """The process that is using a run directory, as its lock tells; the kernel drops the lock of one that died."""
    try:
        with (path / "lock").open(encoding="utf-8") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return lock.read().strip() or "unknown"
    except OSError:
        return None
    return None
