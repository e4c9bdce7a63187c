"""Plotly traces as plain data. The page's script selects a view (steps or time) and a level of smoothing.

A trace may carry `views` (x by axis), `levels` (y by smoothing) and `group` (hidden and shown together); the script
converts them to regular Plotly fields.
"""

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.inspection.report.curves import SMOOTHING, Curve, Floats, smooth, spread, thin
from surefoot.inspection.report.run_groups import Group

Trace = dict[str, Any]

_PALETTE = (
    *("#3778c2", "#e0793a", "#2f9e75", "#c94f6d", "#8b68c8"),
    *("#a77b32", "#2ba0b4", "#7f8c2f", "#d070ad", "#6f7c8b"),
)
_DASHES = ("solid", "dash", "dot")


@dataclass(frozen=True)
class TimeUnit:
    """Unit of the time axis."""

    name: str
    seconds: float


def time_unit(longest_s: float) -> TimeUnit:
    """The unit that suits a duration."""
    if longest_s < 300:
        return TimeUnit("seconds", 1)
    return TimeUnit("minutes", 60) if longest_s < 3 * 3600 else TimeUnit("hours", 3600)


def color_of(index: int) -> str:
    """The color of a group on the page."""
    return _PALETTE[index % len(_PALETTE)]


def dash_of(index: int) -> str:
    """Dash style: colors repeat after ten groups, with a different dash."""
    return _DASHES[index // len(_PALETTE) % len(_DASHES)]


def swatch_style(index: int) -> str:
    """The color as CSS; a ring instead of a dot stands for a dashed line."""
    hole = "var(--paper)" if dash_of(index) != "solid" else color_of(index)
    return f"--color:{color_of(index)};--hole:{hole}"


def plain(text: str) -> str:
    """Escaped text: Plotly interprets HTML tags."""
    return html.escape(text, quote=False)


def rounded(values: Iterable[float], digits: int = 5) -> list[float | int]:
    """Numbers rounded to keep the file small; whole numbers stay whole."""
    return [int(value) if float(value).is_integer() else float(f"{value:.{digits}g}") for value in values]


def views(steps: Floats, seconds: Floats, unit: TimeUnit) -> dict[str, Any]:
    """The two x axes."""
    whole = np.round(steps).astype(int).tolist()
    return {"steps": {"x": whole}, "time": {"x": rounded(seconds / unit.seconds)}}


def curve_traces(group: Group, curves: Sequence[Curve], unit: TimeUnit, limit: int, *, faint: bool) -> list[Trace]:
    """One run: the smoothed curve over its raw values. Several runs: their mean in its band."""
    if not curves:
        return []
    if len(curves) == 1:
        return [raw_trace(group, curves[0], unit, limit), _smoothed_trace(group, curves[0], unit, limit)]
    raw = [raw_trace(group, curve, unit, limit) for curve in curves] if faint else []
    return [*raw, *spread_traces(group, curves, unit, limit, SMOOTHING)]


def raw_trace(group: Group, curve: Curve, unit: TimeUnit, limit: int) -> Trace:
    """The raw values as a faint line."""
    kept = thin(curve.values, limit)
    line = {"color": color_of(group.index), "width": 1}
    data = {"views": views(curve.steps[kept], curve.seconds[kept], unit), "y": rounded(curve.values[kept])}
    return {**_line(group), **data, "line": line, "opacity": 0.3, "hoverinfo": "skip"}


def _smoothed_trace(group: Group, curve: Curve, unit: TimeUnit, limit: int) -> Trace:
    kept = thin(curve.values, limit)
    levels = {level: {"y": rounded(smooth(curve.values, share)[kept])} for level, share in SMOOTHING.items()}
    mode = "lines" if len(kept) > 1 else "markers"
    return {
        **_line(group),
        "mode": mode,
        "views": views(curve.steps[kept], curve.seconds[kept], unit),
        "levels": levels,
    }


def spread_traces(
    group: Group, curves: Sequence[Curve], unit: TimeUnit, limit: int, smoothing: Mapping[str, float]
) -> list[Trace]:
    """The mean of several runs in its band, by level of smoothing."""
    spreads = {level: spread([curve.smoothed(share) for curve in curves], limit) for level, share in smoothing.items()}
    first = next(iter(spreads.values()))
    where = {"views": views(first.steps, first.seconds, unit)}

    def levels(field: str) -> dict[str, Any]:
        return {level: {"y": rounded(getattr(found, field))} for level, found in spreads.items()}

    edge = {**_line(group), **where, "line": {"width": 0}, "hoverinfo": "skip", "mode": "lines"}
    low, high = {**edge, "levels": levels("low")}, {**edge, "levels": levels("high")}
    filled = {"fill": "tonexty", "fillcolor": translucent(color_of(group.index), 0.18)}
    mode = "lines" if len(first.steps) > 1 else "markers"
    return [low, {**high, **filled}, {**_line(group), **where, "mode": mode, "levels": levels("mean")}]


def evaluation_trace(
    group: Group, name: str, curve: Curve, bars: tuple[Floats, Floats], unit: TimeUnit, *, joined: bool
) -> Trace:
    """Diamonds with error bars."""
    color = color_of(group.index)
    above, below = (rounded(side) for side in bars)
    lengths = {"type": "data", "symmetric": False, "array": above, "arrayminus": below}
    return {
        **_line(group),
        "name": plain(f"{name} (evaluation)"),
        "mode": "lines+markers" if joined else "markers",
        "views": views(curve.steps, curve.seconds, unit),
        "y": rounded(curve.values),
        "hovertemplate": "%{y:,.1f}",
        "marker": {"color": color, "size": 8, "symbol": "diamond", "line": {"width": 1, "color": "#ffffff"}},
        "error_y": {**lengths, "color": translucent(color, 0.6), "thickness": 1.2, "width": 3},
    }


def lane_label(text: str, y: float) -> dict[str, Any]:
    """A label above its lane and inside the plot, so that the left margin is the same as in other charts."""
    where = {"xref": "paper", "x": 0, "xanchor": "left", "y": y, "yanchor": "bottom"}
    return {**where, "text": plain(text), "showarrow": False, "font": {"size": 12}}


def lane_axis(count: int, edge: float = 0.45) -> dict[str, Any]:
    """The hidden axis of lanes at 0, -1, ..."""
    return {"range": [-count + edge, 0.75], "visible": False, "fixedrange": True}


def translucent(color: str, opacity: float) -> str:
    """A `#rrggbb` color with an opacity."""
    red, green, blue = (int(color[start : start + 2], 16) for start in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"


def _line(group: Group) -> Trace:
    color = color_of(group.index)
    return {
        "type": "scatter",
        "group": group.index,
        "name": plain(group.label),
        "mode": "lines",
        "line": {"color": color, "width": 2, "dash": dash_of(group.index)},
        "marker": {"color": color, "size": 7},
        "showlegend": False,
    }
