"""Evaluations as diamonds: per run with the std over episodes, or per group with the range over runs."""

from collections.abc import Sequence

import numpy as np

from surefoot.inspection.report.curves import Curve
from surefoot.inspection.report.metric_curve import metric_curve
from surefoot.inspection.report.reported_run import ReportedRun
from surefoot.inspection.report.run_groups import Group
from surefoot.inspection.report.traces import TimeUnit, Trace, evaluation_trace
from surefoot.telemetry import names


def run_evaluations(groups: Sequence[Group], unit: TimeUnit) -> list[Trace]:
    """One line per run."""
    return [
        _of_run(group, run, unit, joined=True)
        for group in groups
        for run in group.runs
        if run.series(names.EVAL_REWARD)
    ]


def group_evaluations(groups: Sequence[Group], unit: TimeUnit) -> list[Trace]:
    """Diamonds of a group: the mean over its runs at each step."""
    traces = []
    for group in groups:
        evaluated = [run for run in group.runs if run.series(names.EVAL_REWARD)]
        if len(evaluated) == 1:
            traces.append(_of_run(group, evaluated[0], unit, joined=False))
        elif evaluated:
            traces.append(_of_several(group, evaluated, unit))
    return traces


def _of_run(group: Group, run: ReportedRun, unit: TimeUnit, *, joined: bool) -> Trace:
    curve = metric_curve(run, names.EVAL_REWARD)
    assert curve is not None
    found = [record.get(names.EVAL_REWARD_STD, 0.0) for record in run.records if names.EVAL_REWARD in record]
    std = np.array(found, dtype=np.float64)
    return evaluation_trace(group, run.name, curve, (std, std), unit, joined=joined)


def _of_several(group: Group, runs: Sequence[ReportedRun], unit: TimeUnit) -> Trace:
    """Runs of one config evaluate at the same steps, so no interpolation is needed."""
    curves = [curve for run in runs if (curve := metric_curve(run, names.EVAL_REWARD)) is not None]
    steps, values, seconds = (
        np.concatenate([getattr(curve, part) for curve in curves]) for part in ("steps", "values", "seconds")
    )
    at = np.unique(steps)
    here = [steps == step for step in at]
    mean, low, high = (np.array([pick(values[these]) for these in here]) for pick in (np.mean, np.min, np.max))
    when = np.array([seconds[these].mean() for these in here])
    return evaluation_trace(group, group.label, Curve(at, when, mean), (high - mean, mean - low), unit, joined=False)
