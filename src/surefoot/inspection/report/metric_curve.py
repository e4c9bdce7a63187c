"""From a run's records to a curve."""

import numpy as np

from surefoot.inspection.report.curves import Curve
from surefoot.inspection.report.reported_run import ReportedRun


def metric_curve(run: ReportedRun, metric: str, factor: float = 1) -> Curve | None:
    """A metric with its steps and times; None if it was never recorded."""
    times = run.seconds or [0.0] * len(run.records)
    found = [
        (record["step"], seconds, factor * record[metric])
        for record, seconds in zip(run.records, times, strict=True)
        if metric in record
    ]
    return Curve(*np.array(found, dtype=np.float64).T) if found else None
