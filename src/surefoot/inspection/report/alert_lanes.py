"""Timeline of alerts: one lane per alert and run, on the same axis as the curves."""

from collections.abc import Sequence
from textwrap import wrap

import numpy as np

from surefoot.inspection.report.charts import Chart, ranges
from surefoot.inspection.report.reported_run import AlertSpan, ReportedRun
from surefoot.inspection.report.run_groups import Group
from surefoot.inspection.report.traces import TimeUnit, Trace, color_of, lane_axis, lane_label, plain, rounded

MOST_LANES = 30
"""Above this number of lanes, the runs of a group share lanes."""
_LANE_HEIGHT, _FRAME_HEIGHT = 38, 74


def alerts_chart(groups: Sequence[Group], unit: TimeUnit) -> Chart | None:
    """When each alert was active; None if no alert was raised."""
    found = [(group, run, span) for group in groups for run in group.runs for span in run.alerts]
    if not found:
        return None
    by_run = len({(str(run.path), span.name) for _, run, span in found}) <= MOST_LANES
    lanes: dict[tuple[int, str, str], str] = {}
    bars: list[tuple[Group, ReportedRun, AlertSpan, tuple[int, str, str]]] = []
    for group, run, span in found:
        lane = (group.index, str(run.path) if by_run else "", span.name)
        lanes.setdefault(lane, f"{span.label} · {run.name if by_run else group.label}")
        bars.append((group, run, span, lane))
    places = {lane: -place for place, lane in enumerate(lanes)}
    traces = []
    for group in groups:
        mine = [(run, span, places[lane]) for owner, run, span, lane in bars if owner is group]
        if mine:
            traces.append(_bars(group, mine, unit))
    labels = [lane_label(text, places[lane] + 0.22) for lane, text in lanes.items()]
    layout = {"yaxis": lane_axis(len(lanes)), "annotations": labels, "hovermode": "closest", "barmode": "overlay"}
    height = _FRAME_HEIGHT + _LANE_HEIGHT * len(lanes)
    return Chart("Alerts", traces, is_alone=True, height=height, ranges=ranges(groups, unit), layout=layout)


def _bars(group: Group, mine: list[tuple[ReportedRun, AlertSpan, int]], unit: TimeUnit) -> Trace:
    starts = np.array([span.start for _, span, _ in mine], dtype=np.float64)
    ends = np.array([span.end for _, span, _ in mine], dtype=np.float64)
    start_times, end_times = (
        np.array([run.seconds_at(step) for (run, _, _), step in zip(mine, steps, strict=True)]) / unit.seconds
        for steps in (starts, ends)
    )
    color = color_of(group.index)
    return {
        "type": "bar",
        "orientation": "h",
        "group": group.index,
        "y": [place for _, _, place in mine],
        "views": {
            "steps": {"base": rounded(starts, 9), "x": rounded(ends - starts, 9)},
            "time": {"base": rounded(start_times), "x": rounded(end_times - start_times)},
        },
        "width": 0.36,
        # The outline keeps a short alert visible in a long run.
        "marker": {"color": color, "line": {"color": color, "width": 2}},
        "text": [_hover(run, span) for run, span, _ in mine],
        "textposition": "none",
        "hovertemplate": "%{text}<extra></extra>",
        "showlegend": False,
    }


def _hover(run: ReportedRun, span: AlertSpan) -> str:
    meaning = "<br>".join(plain(line) for line in wrap(span.meaning, 60))
    return f"<b>{plain(span.label)}</b><br>{plain(run.name)}, steps {span.start:,} to {span.end:,}<br>{meaning}"
