"""Time and memory: steps per second, seconds per iteration by phase, totals per run."""

from collections.abc import Sequence
from dataclasses import replace

from surefoot.inspection.report.charts import MOST_POINTS_SMALL, Chart, metric_chart, ranges
from surefoot.inspection.report.curves import SMOOTHING, metric_curve, spread
from surefoot.inspection.report.reported_run import ReportedRun
from surefoot.inspection.report.run_groups import Group
from surefoot.inspection.report.traces import TimeUnit, Trace, lane_axis, lane_label, rounded, views
from surefoot.telemetry import names

MOST_PHASE_CHARTS = 6
_PHASES = {"rollout": (names.ROLLOUT_SECONDS, "#64748b"), "learning": (names.LEARN_SECONDS, "#a3b1c2")}
_REST, _REST_COLOR = "other (evaluation, saving)", "#d9dfe7"
_LEGEND = {"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom", "traceorder": "normal"}


def timing_charts(groups: Sequence[Group], unit: TimeUnit) -> list[Chart]:
    """Small charts: steps per second, seconds per iteration by phase (one chart per group), memory."""
    speed = metric_chart(groups, names.STEPS_PER_SECOND, "Steps per second", unit)
    together = ranges(groups, unit)
    phases = [_phase_chart(group, unit, together) for group in groups[:MOST_PHASE_CHARTS]]
    charts = (_from_zero(speed, tickformat="~s"), *phases, _memory_chart(groups, unit))
    return [chart for chart in charts if chart is not None]


def _memory_chart(groups: Sequence[Group], unit: TimeUnit) -> Chart | None:
    """Memory of the process, from 0: differences look as large as they are. The metric counts 2**20 bytes."""
    used = [value for group in groups for run in group.runs for _, value in run.series(names.RAM)]
    factor, word = (1 / 1024, "GiB") if used and max(used) >= 1024 else (1, "MiB")
    chart = _from_zero(metric_chart(groups, names.RAM, f"Memory ({word})", unit, factor=factor))
    return None if chart is None else replace(chart, note="of the training process, without worker processes")


def _from_zero(chart: Chart | None, **axis: str) -> Chart | None:
    return None if chart is None else replace(chart, layout={"yaxis": {"rangemode": "tozero", **axis}})


def totals_chart(groups: Sequence[Group]) -> Chart | None:
    """One bar per run: the fraction of time per phase, which is comparable between runs of different lengths."""
    totals = [(run, found) for group in groups for run in group.runs if (found := phase_totals(run)) is not None]
    if not totals:
        return None
    places = [-place for place in range(len(totals))]
    colors = {name: color for name, (_, color) in _PHASES.items()} | {_REST: _REST_COLOR}
    traces: list[Trace] = []
    for phase, color in colors.items():
        shares = [100 * found[phase] / (sum(found.values()) or 1) for _, found in totals]
        seconds = [f"{found[phase]:,.1f} s" for _, found in totals]
        bar = {"type": "bar", "orientation": "h", "name": phase, "x": rounded(shares), "y": places, "width": 0.42}
        shown = {"texttemplate": "%{x:.0f}%", "textposition": "inside", "insidetextanchor": "middle", "textangle": 0}
        hover = "%{customdata} (%{x:.1f}%)<extra>" + phase + "</extra>"
        shown |= {"customdata": seconds}
        traces.append({**bar, **shown, "marker": {"color": color}, "hovertemplate": hover})
    labels = [
        lane_label(f"{run.name} · {sum(found.values()):,.1f} s", place + 0.24)
        for (run, found), place in zip(totals, places, strict=True)
    ]
    layout = {
        "barmode": "stack",
        "annotations": labels,
        "legend": _LEGEND,
        "hovermode": "closest",
        "uniformtext": {"minsize": 10, "mode": "hide"},
        "xaxis": {"title": {"text": "fraction of training time (%)"}, "range": [0, 100]},
        "yaxis": lane_axis(len(totals)),
    }
    return Chart("Training time by phase", traces, height=100 + 42 * len(totals), layout=layout)


def phase_totals(run: ReportedRun) -> dict[str, float] | None:
    """Seconds by phase. Records may skip iterations, so the mean of a phase is used for those in between."""
    if run.seconds is None:
        return None
    means = {}
    for phase, (metric, _) in _PHASES.items():
        seconds = [value for _, value in run.series(metric)]
        if not seconds:
            return None
        iterations = run.records[-1].get(names.ITERATION, len(seconds))
        means[phase] = sum(seconds) / len(seconds) * iterations
    return means | {_REST: max(0.0, run.total_seconds - sum(means.values()))}


def _phase_chart(group: Group, unit: TimeUnit, together: dict[str, list[float]]) -> Chart | None:
    traces: list[Trace] = []
    for phase, (metric, color) in _PHASES.items():
        curves = [curve for run in group.runs if (curve := metric_curve(run, metric)) is not None]
        if not curves:
            return None
        smoothed = {
            level: spread([curve.smoothed(share) for curve in curves], MOST_POINTS_SMALL)
            for level, share in SMOOTHING.items()
        }
        first = next(iter(smoothed.values()))
        traces.append(
            {
                "type": "scatter",
                "mode": "lines" if len(first.steps) > 1 else "markers",
                "name": phase,
                "stackgroup": "phases",
                "views": views(first.steps, first.seconds, unit),
                "levels": {level: {"y": rounded(found.mean)} for level, found in smoothed.items()},
                "line": {"color": color, "width": 1},
                "fillcolor": color,
                "hovertemplate": "%{y:.3~g} s",
            }
        )
    layout = {"legend": _LEGEND, "yaxis": {"rangemode": "tozero"}}
    note = f"{group.label}{', mean of the runs' * (len(group.runs) > 1)}"
    return Chart("Seconds per iteration", traces, note=note, group=group.index, ranges=together, layout=layout)
