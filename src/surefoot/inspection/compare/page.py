"""A comparison as a self-contained HTML page."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

from surefoot.inspection.compare.comparison import Comparison, Side
from surefoot.inspection.compare.table import COLUMNS
from surefoot.inspection.report.charts import Chart, evaluation_band_chart, return_chart
from surefoot.inspection.report.document import Document, headed
from surefoot.inspection.report.page import controls_of
from surefoot.inspection.report.run_groups import Group
from surefoot.inspection.report.tables import differences_table, figure, swatch, table
from surefoot.inspection.report.traces import Trace, color_of, lane_axis, lane_label, plain, rounded, time_unit
from surefoot.statistics.aggregates import Aggregate
from surefoot.statistics.risk import Estimate

_LANE_HEIGHT, _FRAME_HEIGHT = 46, 64
_INTERVALS = (
    "Dots: the figure; lines: its 95% stratified bootstrap interval over the runs. IQM: interquartile mean, the mean of"
    " the middle half of the runs, which few outliers cannot move."
)
_IMPROVEMENT = (
    "How likely a run of the first group scores higher than one of the second, with its 95% interval; ties count half."
    " If the interval contains 0.5, these runs do not show which group is better."
)
_BANDS = (
    "Lines: mean over the runs; bands: its 95% bootstrap interval, or the range of fewer than 3 runs; faint lines:"
    " single runs."
)


def compare_page(found: Comparison, now: datetime | None = None) -> str:
    """The page: scores, intervals, probabilities of improvement, curves and differing settings."""
    page = Document()
    groups = [group for side in found.sides for group in side.groups.values()]
    unit = time_unit(max(run.total_seconds for group in groups for run in group.runs))
    notes = "".join(f"<p class='note'>Note: {escape(note)}.</p>" for note in found.notes)
    page.add("Scores", _tables(found) + notes, f"Score of a run: {escape(found.measure.text)}.")
    page.add("Intervals", _intervals(page, found), _INTERVALS)
    page.add("Probability of improvement", _improvements(page, found), _IMPROVEMENT if found.improvements else "")
    by_task = {task: [group for group in groups if group.env == task] for task in found.tasks}
    curves = {task: page.figure(evaluation_band_chart(own, unit)) for task, own in by_task.items()}
    page.add("Evaluation", headed(curves), f"Evaluations, with deterministic actions; not smoothed. {_BANDS}")
    learning = {task: page.figure(return_chart(own, unit)) for task, own in by_task.items()}
    page.add("Learning", headed(learning), f"Training returns, with sampled actions. {_BANDS}")
    page.add("Settings", headed({task: differences_table(own) for task, own in by_task.items()}))
    facts = [
        f"{len(found.sides)} group{'s' * (len(found.sides) > 1)}",
        f"{sum(len(group.runs) for group in groups)} runs",
        f"written {now or datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
    ]
    axes = {"steps": "environment steps", "time": f"training time ({unit.name})"}
    heading = "Comparison on " + ", ".join(found.tasks)
    return page.html(heading, " · ".join(facts), controls_of(_legend(found.sides), has_time=True), axes)


def _legend(sides: Sequence[Side]) -> list[Group]:
    """One entry per side, with the runs of all tasks."""
    return [
        Group(side.index, side.name, "", tuple(run for group in side.groups.values() for run in group.runs))
        for side in sides
    ]


def _rows(found: Comparison) -> dict[str, Mapping[str, Aggregate]]:
    """Aggregates by what they are about."""
    rows: dict[str, Mapping[str, Aggregate]] = dict(found.by_task)
    return rows | ({f"All tasks, scale {found.normalize}": found.over_tasks} if found.over_tasks else {})


def _tables(found: Comparison) -> str:
    sides = {side.name: side for side in found.sides}
    contents = {}
    for task, rows in _rows(found).items():
        body = ""
        for name, figures in rows.items():
            side = sides[name]
            own = side.scores.get(task)
            count = len(own) if own is not None else sum(map(len, side.scores.values()))
            seen = "".join(_cell(getattr(figures, key), count) for key in COLUMNS)
            listed = f"<small>{', '.join(map(figure, own))}</small>" if own is not None else ""
            name_cell = f"<td>{swatch(side.groups[next(iter(side.groups))])}<b>{escape(name)}</b>{listed}</td>"
            body += f"<tr>{name_cell}<td>{count}</td>{seen}</tr>"
        contents[task] = table("risk", ["group", "runs", *COLUMNS.values()], body)
    return headed(contents)


def _cell(found: Estimate, count: int) -> str:
    spread = f"<small>{figure(found.low)}&nbsp;to {figure(found.high)}</small>" if count > 1 else ""
    return f"<td>{figure(found.value)}{spread}</td>"


def _intervals(page: Document, found: Comparison) -> str:
    indices = {side.name: side.index for side in found.sides}
    contents = {}
    for task, rows in _rows(found).items():
        charts, axis = [], {"range": _range([getattr(figures, key) for figures in rows.values() for key in COLUMNS])}
        for key, title in COLUMNS.items():
            lanes = [(name, indices[name], getattr(figures, key)) for name, figures in rows.items()]
            charts.append(_interval_chart(title[0].upper() + title[1:], lanes, {"xaxis": axis}))
        contents[task] = page.small_figures(charts)
    return headed(contents)


def _range(figures: Sequence[Estimate]) -> list[float | int]:
    """One axis for all figures, so that their charts can be compared."""
    low, high = min(one.low for one in figures), max(one.high for one in figures)
    margin = 0.06 * (high - low) or max(abs(low) / 100, 0.5)
    return rounded([low - margin, high + margin])


def _improvements(page: Document, found: Comparison) -> str:
    indices = {side.name: side.index for side in found.sides}
    contents = {}
    for task in dict.fromkeys(one.task for one in found.improvements):
        own = [one for one in found.improvements if one.task == task]
        lanes = [(f"{one.first} over {one.second}", indices[one.first], one.probability) for one in own]
        half = {"type": "line", "x0": 0.5, "x1": 0.5, "yref": "paper", "y0": 0, "y1": 1}
        layout = {
            "xaxis": {"range": [-0.02, 1.02], "title": {"text": "probability"}},
            "shapes": [{**half, "line": {"color": "#8a96a3", "width": 1, "dash": "dash"}}],
        }
        contents[task or "All tasks"] = page.figure(_interval_chart("Probability", lanes, layout, is_alone=True))
    return headed(contents)


def _interval_chart(
    title: str, lanes: Sequence[tuple[str, int, Estimate]], layout: dict[str, Any], *, is_alone: bool = False
) -> Chart:
    """One lane per entry: a dot with its interval, and its name above it."""
    traces: list[Trace] = []
    labels = []
    for place, (name, index, found) in enumerate(lanes):
        above, below = rounded([found.high - found.value])[0], rounded([found.value - found.low])[0]
        bars = {"type": "data", "symmetric": False, "array": [above], "arrayminus": [below], "thickness": 4, "width": 0}
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "group": index,
                "x": rounded([found.value]),
                "y": [-place],
                "error_x": {**bars, "color": color_of(index)},
                "marker": {"color": color_of(index), "size": 11, "line": {"width": 1.5, "color": "#ffffff"}},
                "hovertemplate": f"{plain(name)}: {found.value:,.4g} ({found.low:,.4g} to {found.high:,.4g})"
                "<extra></extra>",
                "showlegend": False,
            }
        )
        labels.append(lane_label(name, -place + 0.14))
    own = {"annotations": labels, "hovermode": "closest", "yaxis": lane_axis(len(lanes), 0.5)}
    height = _FRAME_HEIGHT + _LANE_HEIGHT * len(lanes)
    return Chart(title, traces, is_alone=is_alone, height=height, layout=own | layout)
