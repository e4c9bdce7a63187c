"""What earlier processes of a run have recorded: its display and its alerts continue from there."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from surefoot.errors import RunDirectoryError
from surefoot.telemetry import names
from surefoot.telemetry.records import Record, numbers_of, records_by_step, training_seconds


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
