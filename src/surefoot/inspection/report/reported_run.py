"""A run with a name that is unique on the page, and cached values that many charts need, such as spans of alerts."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from surefoot.inspection.evaluation_record import Evaluated, EvaluatedEpisodes, evaluations_of, read_evaluations
from surefoot.inspection.run_record import RunRecord
from surefoot.telemetry import names
from surefoot.telemetry.alerts import ALERTS
from surefoot.telemetry.names import ALERT_PREFIX
from surefoot.telemetry.records import training_seconds

_KNOWN = {alert.name: alert for alert in ALERTS}


@dataclass(frozen=True)
class AlertSpan:
    """An alert that was active between two steps."""

    name: str
    start: int
    end: int

    @property
    def label(self) -> str:
        """The label of the live display; for an unknown alert, its name."""
        return _KNOWN[self.name].label if self.name in _KNOWN else self.name.replace("_", " ")

    @property
    def meaning(self) -> str:
        """What the alert means; empty for an unknown alert."""
        return _KNOWN[self.name].meaning if self.name in _KNOWN else ""


def alert_spans(run: RunRecord) -> list[AlertSpan]:
    """Every interval in which an alert was active, sorted by name and time.

    A record describes the iteration that ends at its step, so a span begins at the record before: even an alert of a
    single record has a width. It ends with the last active record: a value of 0 or a missing value clears it.
    """
    names = sorted({name for record in run.records for name in record if name.startswith(ALERT_PREFIX)})
    return [span for name in names for span in _spans(run, name)]


def _spans(run: RunRecord, name: str) -> list[AlertSpan]:
    spans: list[AlertSpan] = []
    began: int | None = None
    before = last = 0
    for record in run.records:
        is_active = record.get(name, 0) > 0
        if is_active:
            began = before if began is None else began
            last = int(record["step"])
        elif began is not None:
            spans.append(AlertSpan(name.removeprefix(ALERT_PREFIX), began, last))
            began = None
        before = int(record["step"])
    if began is not None:
        spans.append(AlertSpan(name.removeprefix(ALERT_PREFIX), began, last))
    return spans


@dataclass(frozen=True)
class ReportedRun(RunRecord):
    """A run with a name that is unique on the page."""

    shown_name: str

    @property
    def name(self) -> str:
        """The shortest unique end of its path."""
        return self.shown_name

    @cached_property
    def alerts(self) -> list[AlertSpan]:
        """When each alert was active."""
        return alert_spans(self)

    @cached_property
    def evaluated(self) -> list[Evaluated]:
        """Every evaluation once."""
        return evaluations_of(self)

    @cached_property
    def evaluations(self) -> dict[int, EvaluatedEpisodes]:
        """Returns of single episodes by step; empty for runs of earlier versions."""
        return read_evaluations(self.path)

    @cached_property
    def seconds(self) -> list[float] | None:
        """Training time at each record; None if some have none."""
        if not all(names.ELAPSED in record for record in self.records):
            return None
        return training_seconds(self.records)

    def seconds_at(self, step: float) -> float:
        """Training time in seconds at a step; the run starts at step 0 and second 0."""
        steps = [0.0, *(record["step"] for record in self.records)]
        return float(np.interp(step, steps, [0.0, *(self.seconds or [0.0] * len(self.records))]))

    @property
    def total_seconds(self) -> float:
        """Total training time; 0 if it was not recorded."""
        return self.seconds[-1] if self.seconds else 0.0


def with_distinct_names(runs: Sequence[RunRecord]) -> list[ReportedRun]:
    """Each run once, named by as many parts of its path as needed to be unique."""
    once = list({run.path.resolve(): run for run in runs}.values())
    parts = [run.path.resolve().parts for run in once]
    named = []
    for run, own in zip(once, parts, strict=True):
        length = next(
            length
            for length in range(1, len(own) + 1)
            if sum(other[-length:] == own[-length:] for other in parts) == 1 or length == len(own)
        )
        named.append(ReportedRun(run.path, run.config, run.records, "/".join(own[-length:])))
    return named
