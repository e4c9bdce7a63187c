"""A run with a name that is unique on the page, and cached values that many charts need."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from surefoot.inspection.evaluation_record import Evaluated, EvaluatedEpisodes, evaluations_of, read_evaluations
from surefoot.inspection.report.alert_spans import AlertSpan, alert_spans
from surefoot.inspection.run_record import RunRecord
from surefoot.telemetry import names
from surefoot.telemetry.records import training_seconds


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
