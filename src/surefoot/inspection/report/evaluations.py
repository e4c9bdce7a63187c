"""Evaluations as diamonds: per run with the std over episodes, or per group with the interval over runs."""

from collections.abc import Sequence

import numpy as np

from surefoot.inspection.report.curves import Curve
from surefoot.inspection.report.reported_run import ReportedRun
from surefoot.inspection.report.run_groups import Group
from surefoot.inspection.report.traces import TimeUnit, Trace, evaluation_trace
from surefoot.statistics.aggregates import mean_band
from surefoot.telemetry import names


def run_evaluations(groups: Sequence[Group], unit: TimeUnit) -> list[Trace]:
    """One line per run."""
    return [_of_run(group, run, unit, joined=True) for group in groups for run in group.runs if run.evaluated]


def group_evaluations(groups: Sequence[Group], unit: TimeUnit) -> list[Trace]:
    """Diamonds of a group: the mean over its runs at each step."""
    traces = []
    for group in groups:
        evaluated = [run for run in group.runs if run.evaluated]
        if len(evaluated) == 1:
            traces.append(_of_run(group, evaluated[0], unit, joined=False))
        elif evaluated:
            traces.append(_of_several(group, evaluated, unit))
    return traces


def evaluation_curve(run: ReportedRun) -> Curve:
    """The mean rewards of a run's evaluations."""
    steps = np.array([one.step for one in run.evaluated], dtype=np.float64)
    means = np.array([one.figures[names.EVAL_REWARD] for one in run.evaluated], dtype=np.float64)
    return Curve(steps, np.array([run.seconds_at(step) for step in steps]), means)


def _of_run(group: Group, run: ReportedRun, unit: TimeUnit, *, joined: bool) -> Trace:
    found = [one.figures.get(names.EVAL_REWARD_STD, 0.0) for one in run.evaluated]
    std = np.array(found, dtype=np.float64)
    return evaluation_trace(group, run.name, evaluation_curve(run), (std, std), unit, joined=joined)


def _of_several(group: Group, runs: Sequence[ReportedRun], unit: TimeUnit) -> Trace:
    """Runs of one config evaluate at the same steps, so no interpolation is needed."""
    curves = [evaluation_curve(run) for run in runs]
    steps, values, seconds = (
        np.concatenate([getattr(curve, part) for curve in curves]) for part in ("steps", "values", "seconds")
    )
    at = np.unique(steps)
    here = [steps == step for step in at]
    mean = np.array([values[these].mean() for these in here])
    bands = [mean_band(values[these][:, None]) for these in here]
    low, high = (np.array([band[side][0] for band in bands]) for side in (0, 1))
    when = np.array([seconds[these].mean() for these in here])
    return evaluation_trace(group, group.label, Curve(at, when, mean), (high - mean, mean - low), unit, joined=False)
