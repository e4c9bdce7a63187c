"""The charts of the page: the runs and metrics that each one shows. Charts without data are left out."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from surefoot.inspection.report.curves import SMOOTHING, Curve, Floats, metric_curve
from surefoot.inspection.report.reported_run import ReportedRun
from surefoot.inspection.report.run_groups import Group
from surefoot.inspection.report.traces import TimeUnit, Trace, curve_traces, evaluation_trace, raw_trace, spread_traces
from surefoot.statistics.aggregates import mean_band
from surefoot.telemetry import names

MOST_POINTS, MOST_POINTS_SMALL = 1000, 400
"""Maximum number of points of a curve in a large and in a small chart."""
TALL, SMALL = 400, 230
LEAST_SPAN, MOST_POSITIVE = 100, 0.95
"""Ratio of the largest to the smallest value, and share of positive values, from which on an axis is logarithmic."""


@dataclass(frozen=True)
class Chart:
    """A chart in the form that the page's script expects, with its title and note."""

    title: str
    traces: list[Trace]
    note: str = ""
    is_alone: bool = False
    """Without a title, because the chart is alone in its section."""
    group: int | None = None
    height: int = SMALL
    ranges: dict[str, list[float]] = field(default_factory=dict)
    layout: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The chart as JSON for the script."""
        return {"traces": self.traces, "ranges": self.ranges, "layout": self.layout}


@dataclass(frozen=True)
class Diagnostic:
    """A metric with a small chart."""

    metric: str
    title: str
    note: str
    factor: float = 1
    has_decades: bool = False
    """Whether its values may span several powers of ten; then its axis is logarithmic."""


DIAGNOSTICS = (
    Diagnostic(names.APPROX_KL, "KL divergence (nats)", "how far each update moved the policy", has_decades=True),
    Diagnostic(names.CLIP_FRACTION, "Clip fraction", "fraction of samples whose ratio is outside the clip range"),
    Diagnostic(
        names.EXPLAINED_VARIANCE,
        "Explained variance",
        "1: the critic predicts returns perfectly; 0 or less: no better than a constant",
    ),
    Diagnostic(names.ENTROPY_LOSS, "Entropy (nats)", "randomness of the policy", -1),
    Diagnostic(names.STD, "Action std", "standard deviation of the action distribution"),
    Diagnostic(names.VALUE_LOSS, "Value loss", "loss of the critic, in units of its targets", has_decades=True),
    Diagnostic(names.POLICY_LOSS, "Policy loss", "clipped surrogate loss; close to 0, mostly negative"),
    Diagnostic(names.GRAD_NORM, "Gradient norm", "before clipping", has_decades=True),
    Diagnostic(names.LEARNING_RATE, "Learning rate", "after its schedule", has_decades=True),
    Diagnostic(names.EPISODE_LENGTH, "Episode length (steps)", "mean of the last 100 episodes"),
)


def metric_chart(
    groups: Sequence[Group],
    metric: str,
    title: str,
    unit: TimeUnit,
    *,
    factor: float = 1,
    is_large: bool = False,
    has_decades: bool = False,
) -> Chart | None:
    """A chart of one metric for all groups."""
    limit = MOST_POINTS if is_large else MOST_POINTS_SMALL
    traces: list[Trace] = []
    seen: list[Floats] = []
    for group in groups:
        curves = [curve for run in group.runs if (curve := metric_curve(run, metric, factor)) is not None]
        traces += curve_traces(group, curves, unit, limit, faint=is_large)
        seen += [curve.values for curve in curves]
    if not traces:
        return None
    values = np.concatenate(seen)
    layout = _log_layout(values) if has_decades else {}
    height = TALL if is_large else SMALL
    return Chart(title, traces, height=height, ranges=ranges(groups, unit), layout=layout or _constant_layout(values))


def _log_layout(values: Floats) -> dict[str, Any]:
    """A logarithmic axis for positive values that span decades; a few zeros are not drawn."""
    positive = values[values > 0]
    if (values < 0).any() or len(positive) < MOST_POSITIVE * len(values):
        return {}
    if positive.max() < LEAST_SPAN * positive.min():
        return {}
    return {"yaxis": {"type": "log", "dtick": 1 if positive.max() < 1e7 * positive.min() else None}}


def _constant_layout(values: Floats) -> dict[str, Any]:
    """Constant metrics get an axis that starts at 0, so that the value can be read; Plotly's default is -1 to 1."""
    value = float(values[0])
    if value == 0 or values.min() != values.max():
        return {}
    return {"yaxis": {"range": sorted([0.0, 2 * value])}}


def return_chart(groups: Sequence[Group], unit: TimeUnit) -> Chart | None:
    """Return over steps."""
    chart = metric_chart(groups, names.EPISODE_REWARD, "Return", unit, is_large=True)
    if chart is None:
        return None
    layout = {"yaxis": {**chart.layout.get("yaxis", {}), "title": {"text": "return, mean of the last 100 episodes"}}}
    return replace(chart, layout=layout, is_alone=True)


def learning_chart(groups: Sequence[Group], unit: TimeUnit) -> Chart | None:
    """Return over steps, with evaluations."""
    chart = return_chart(groups, unit)
    return chart and replace(chart, traces=[*chart.traces, *group_evaluations(groups, unit)])


def evaluation_chart(groups: Sequence[Group], unit: TimeUnit) -> Chart | None:
    """The evaluations of every run of groups with several runs; those of single runs are in the learning chart."""
    return _of_evaluations(groups, run_evaluations([group for group in groups if len(group.runs) > 1], unit), unit)


def evaluation_band_chart(groups: Sequence[Group], unit: TimeUnit) -> Chart | None:
    """The evaluations of each group: the mean over its runs with its band, never smoothed: they are few."""
    traces: list[Trace] = []
    for group in groups:
        curves = [evaluation_curve(run) for run in group.runs if run.evaluated]
        traces += [raw_trace(group, curve, unit, MOST_POINTS) for curve in curves if len(curves) > 1]
        traces += spread_traces(group, curves, unit, MOST_POINTS, dict.fromkeys(SMOOTHING, 0.0)) if curves else []
    return _of_evaluations(groups, traces, unit)


def _of_evaluations(groups: Sequence[Group], traces: list[Trace], unit: TimeUnit) -> Chart | None:
    if not traces:
        return None
    layout = {"yaxis": {"title": {"text": "mean evaluation reward"}}}
    return Chart("Evaluation", traces, is_alone=True, height=TALL, ranges=ranges(groups, unit), layout=layout)


def diagnostic_charts(groups: Sequence[Group], unit: TimeUnit) -> list[Chart]:
    """Charts of the diagnostics that were recorded."""
    charts = []
    for wanted in DIAGNOSTICS:
        chart = metric_chart(
            *(groups, wanted.metric, wanted.title, unit), factor=wanted.factor, has_decades=wanted.has_decades
        )
        if chart is not None:
            is_log = chart.layout.get("yaxis", {}).get("type") == "log"
            charts.append(replace(chart, note=wanted.note + "; logarithmic axis" * is_log))
    return charts


def env_metric_charts(groups: Sequence[Group], unit: TimeUnit) -> list[Chart]:
    """Charts of the metrics that the envs declared."""
    records = [record for group in groups for run in group.runs for record in run.records]
    of_env = (names.ENV_PREFIX, names.SUCCESS_RATE)
    found = dict.fromkeys(name for record in records for name in record if name.startswith(of_env))
    charts = [metric_chart(groups, name, name.partition("/")[2], unit) for name in found]
    return [replace(chart, note="mean of the last 100 episodes") for chart in charts if chart is not None]


def ranges(groups: Sequence[Group], unit: TimeUnit) -> dict[str, list[float]]:
    """From 0 to the end of the longest run: the same range for all charts of these groups."""
    runs = [run for group in groups for run in group.runs]
    furthest = max(run.records[-1]["step"] for run in runs)
    longest = max(run.total_seconds for run in runs) / unit.seconds
    return {"steps": [0, furthest * 1.01 or 1], "time": [0, longest * 1.01 or 1]}


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
