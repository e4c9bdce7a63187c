"""Reads the records of a run: JSONL files with one object per line, each with its step."""

import json
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from surefoot.errors import RunDirectoryError
from surefoot.storage.files import read_regular
from surefoot.telemetry import names

Record = dict[str, float]
T = TypeVar("T")

_LARGEST = 1e100
_log = logging.getLogger("surefoot")


def records_by_step(path: Path, parse: Callable[[Any], T]) -> dict[int, T]:
    """The lines of a JSONL file by step, as far as `parse` accepts them.

    A kill may leave an incomplete line, and earlier versions repeated steps: the last record of a step counts.
    """
    try:
        lines = read_regular(path).decode(errors="replace").splitlines()
    except OSError as error:
        raise RunDirectoryError(f"{path} cannot be read: {error.strerror}") from error
    by_step: dict[int, T] = {}
    skipped = 0
    for line in lines:
        try:
            raw = json.loads(line)
            step, record = _step(raw["step"]), parse(raw)
        except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
            skipped += 1
            continue
        while by_step and next(reversed(by_step)) >= step:
            by_step.popitem()
        by_step[step] = record
    if skipped:
        _log.warning("%s: skipped %d of %d lines that are not records with a step", path, skipped, len(lines))
    return by_step


def lines_until(path: Path, step: int) -> str:
    """The records of a JSONL file up to a step: one line per step, in order."""
    by_step = records_by_step(path, dict)
    return "".join(json.dumps(record) + "\n" for number, record in by_step.items() if number <= step)


def numbers_of(raw: dict[str, Any]) -> Record:
    """The entries of a line that are numbers."""
    return {name: value for name, value in raw.items() if is_number(value)}


def is_number(value: Any) -> bool:
    """Whether sums and squares of a value are finite: others cannot be plotted or checked."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -_LARGEST <= value <= _LARGEST


def training_seconds(records: Sequence[Record]) -> list[float]:
    """Training time at each record. A resumed run counts from 0 again, so the times of its processes are added up."""
    total, before, times = 0.0, 0.0, []
    for record in records:
        now = record.get(names.ELAPSED, before)
        total += now - before if now >= before else now
        before = now
        times.append(total)
    return times


def _step(value: Any) -> int:
    if not is_number(value) or not 0 <= value < 2**53 or value != int(value):
        raise ValueError("not a step")
    return int(value)


@dataclass(frozen=True)
class History:
    """The time that a run has taken, the returns that it has reached, and its first record."""

    elapsed_s: float = 0.0
    returns: tuple[float, ...] = ()
    first: Record = field(default_factory=dict)


NO_HISTORY = History()


def read_history(metrics_file: Path, until_step: int) -> History:
    """The history up to the step that a run continues from; empty if there are no records."""
    if until_step == 0 or not os.path.isfile(metrics_file):
        return NO_HISTORY
    try:
        by_step = records_by_step(metrics_file, numbers_of)
    except RunDirectoryError:  # a display is not worth an error
        return NO_HISTORY
    records = [record for step, record in by_step.items() if step <= until_step]
    if not records:
        return NO_HISTORY
    returns = tuple(record[names.EPISODE_REWARD] for record in records if names.EPISODE_REWARD in record)
    return History(training_seconds(records)[-1], returns, records[0])
