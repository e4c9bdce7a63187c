"""The HTML report about a sweep."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

from surefoot.inspection.report.charts import SMALL, TALL, Chart
from surefoot.inspection.report.document import Document
from surefoot.inspection.report.tables import NOTHING, duration, table
from surefoot.inspection.report.traces import Trace, color_of, plain, rounded, translucent
from surefoot.settings.config import Config
from surefoot.settings.layers import read_yaml
from surefoot.settings.ranges import Range
from surefoot.sweep.directory import BEST, DATABASE, SETTINGS
from surefoot.sweep.settings import SweepConfig, read_settings
from surefoot.sweep.study import Study, Trial
from surefoot.sweep.sweep import value_of

MOST_LINES = 200
"""Trials that charts with a line per trial show at most: the best ones."""
_BEST, _OTHER, _MUTED = color_of(1), color_of(0), "#8a96a3"
_WORDS = {"complete": "finished", "pruned": "pruned", "fail": "failed", "running": "running"}


def sweep_page(path: Path, now: datetime | None = None) -> str:
    """The page as self-contained HTML; the sweep may still be in progress."""
    config, sweep = read_settings(read_yaml(path / SETTINGS), {})
    with Study(path / DATABASE, sweep) as study:
        trials, best, shares = study.trials(), study.best(), study.importances()
    page, ranked = Document(), _ranked(trials, sweep)
    page.add("Best settings", _best_table(config, sweep, best), _best_note(path, best))
    note = f"{_objective_text(sweep).capitalize()} of each trial; line: the best so far."
    page.add("History", page.figure(_history(trials, sweep)), note)
    page.add("Importance", page.figure(_importance(shares)), _IMPORTANCE_NOTE)
    page.add("Values", page.figure(_parallel(ranked, sweep)), _PARALLEL_NOTE)
    page.add("Objective by setting", page.small_figures(_slices(ranked, sweep)), "Finished trials; orange: the best.")
    page.add("Evaluations", page.figure(_evaluations(trials, ranked, sweep)), _EVALUATIONS_NOTE)
    page.add("Trials", _trials_table(trials, sweep))
    axes = {"steps": "environment steps", "time": "seconds"}
    return page.html(f"Sweep of {config.env.id}", _lead(path, sweep, trials, now or datetime.now(UTC)), "", axes)


_IMPORTANCE_NOTE = (
    "How much each setting distinguishes the best quarter of the trials from all (PED-ANOVA); the shares add up to 1."
)
_PARALLEL_NOTE = "One line per finished trial, from the worst (gray) to the best (orange). Hover for its values."
_EVALUATIONS_NOTE = "Mean over the seeds. Orange: the best trial; dashed: pruned or unfinished trials."


def _ranked(trials: Sequence[Trial], sweep: SweepConfig) -> list[Trial]:
    """Finished trials, the worst first."""
    sign = -1 if sweep.minimizes else 1
    finished = [one for one in trials if one.objective is not None]
    return sorted(finished, key=lambda one: (sign * (one.objective or 0.0), -one.number))


def _objective_text(sweep: SweepConfig) -> str:
    objective = sweep.objective
    if objective.time_to is None:
        return f"{objective.metric} of the last evaluation"
    return f"{objective.time_to.unit} until {objective.metric} reaches {objective.time_to.score:g}"


def _lead(path: Path, sweep: SweepConfig, trials: Sequence[Trial], now: datetime) -> str:
    states = [one.state for one in trials]
    counts = ", ".join(f"{states.count(state)} {word}" for state, word in _WORDS.items() if state in states)
    facts = [
        path.resolve().name,
        f"{len(trials)} of {sweep.num_trials} trials" + f" ({counts})" * bool(counts),
        _objective_text(sweep),
        f"sampler {sweep.sampler}",
        f"pruner {sweep.pruner}",
        f"{sweep.seeds} seed{'s' * (sweep.seeds > 1)} per trial",
        f"written {now:%Y-%m-%d %H:%M} UTC",
    ]
    return " · ".join(escape(fact) for fact in facts)


def _best_note(path: Path, best: Trial | None) -> str:
    if best is None:
        return "No trial has finished yet."
    command = f"surefoot train --config {path / BEST}"
    finals = "" if best.final is None else f", with the seeds of the finals {_number(best.final)}"
    return f"Trial {best.number}: {_number(best.objective)}{finals}. Train with them: <code>{escape(command)}</code>"


def _best_table(config: Config, sweep: SweepConfig, best: Trial | None) -> str:
    rows = ""
    for key, values in sweep.tunables.items():
        tried = ", ".join(map(_number, values.choices)) or (
            f"{_number(values.low)} to {_number(values.high)}" + f", {values.scale}" * (values.scale != "linear")
        )
        found = NOTHING if best is None else escape(_number(best.values[key]))
        own = escape(_number(value_of(config, key)))
        rows += f"<tr><th>{escape(key)}</th><td><b>{found}</b></td><td>{own}</td><td>{escape(tried)}</td></tr>"
    return table("settings", ("setting", "best", "config", "tried"), rows)


def _history(trials: Sequence[Trial], sweep: SweepConfig) -> Chart | None:
    finished = [one for one in trials if one.objective is not None]
    if not finished:
        return None
    numbers, values = [one.number for one in finished], [one.objective or 0.0 for one in finished]
    choose, so_far = (min if sweep.minimizes else max), list[float]()
    for value in values:
        so_far.append(choose([*so_far[-1:], value]))
    marks = _scatter(numbers, values, "markers", color=_OTHER)
    marks |= {"text": [_described(one) for one in finished], "hovertemplate": "%{text}<extra></extra>"}
    line = _scatter(numbers, so_far, "lines", color=_BEST) | {"line": {"color": _BEST, "width": 2, "shape": "hv"}}
    layout = {
        "xaxis": {"title": {"text": "trial"}},
        "yaxis": {"title": {"text": _objective_text(sweep)}, "tickformat": "~s" if sweep.minimizes else ""},
        "hovermode": "closest",
    }
    return Chart("History", [line | {"hoverinfo": "skip"}, marks], is_alone=True, height=TALL, layout=layout)


def _importance(shares: dict[str, float]) -> Chart | None:
    if not shares:
        return None
    names = list(reversed(shares))
    bars: Trace = {"type": "bar", "orientation": "h", "x": rounded(shares[name] for name in names)}
    bars |= {"y": [plain(name) for name in names], "marker": {"color": _OTHER}, "hovertemplate": "%{y}: %{x:.2f}"}
    layout = {
        "xaxis": {"title": {"text": "share"}, "rangemode": "tozero"},
        "yaxis": {"automargin": True},
        "hovermode": "closest",
    }
    return Chart("Importance", [bars], is_alone=True, height=70 + 34 * len(names), layout=layout)


def _parallel(ranked: Sequence[Trial], sweep: SweepConfig) -> Chart | None:
    """A line per trial over the places of its values in their ranges, and of its objective."""
    if not ranked:
        return None
    shown = ranked[-MOST_LINES:]
    lowest, highest = shown[0].objective or 0.0, shown[-1].objective or 0.0
    goals = Range(low=min(lowest, highest), high=max(lowest, highest)) if lowest != highest else None
    keys, traces = list(sweep.tunables), []
    for place, one in enumerate(shown):
        shares = [sweep.tunables[key].share(one.values[key]) for key in keys]
        shares.append(0.5 if goals is None else goals.share(one.objective))
        is_best = place == len(shown) - 1
        good = (place + 1) / len(shown)
        color = _BEST if is_best else translucent(_mixed(good), 0.35 + 0.4 * good)
        trace = _scatter(list(range(len(shares))), shares, "lines+markers", color=color)
        trace |= {"line": {"color": color, "width": 3 if is_best else 1.5}, "marker": {"color": color, "size": 5}}
        traces.append(trace | {"text": [_described(one)] * len(shares), "hovertemplate": "%{text}<extra></extra>"})
    ends = [_ends(sweep.tunables[key]) for key in keys]
    ends.append([(0.5, _number(lowest))] if goals is None else [(0, _number(goals.low)), (1, _number(goals.high))])
    layout: dict[str, Any] = {
        "xaxis": {
            "tickvals": list(range(len(ends))),
            "ticktext": [*map(plain, keys), "<b>objective</b>"],
            "range": [-0.4, len(ends) - 0.6],
            "zeroline": False,
        },
        "yaxis": {"visible": False, "range": [-0.12, 1.12]},
        "annotations": [
            {
                "x": x,
                "y": y,
                "text": plain(text),
                "showarrow": False,
                "xanchor": "left",
                "xshift": 6,
                "font": {"size": 11},
            }
            for x, marks in enumerate(ends)
            for y, text in marks
        ],
        "hovermode": "closest",
    }
    return Chart("Values", traces, is_alone=True, height=TALL, layout=layout)


def _ends(values: Range) -> list[tuple[float, str]]:
    if values.choices:
        return [(values.share(choice), _number(choice)) for choice in values.choices]
    return [(0, _number(values.low)), (1, _number(values.high))]


def _slices(ranked: Sequence[Trial], sweep: SweepConfig) -> list[Chart]:
    charts = []
    for key, values in sweep.tunables.items() if ranked else ():
        ticks = (
            _ends(values)
            if values.choices
            else [(share, _number(values.at(share), 3)) for share in (0, 0.25, 0.5, 0.75, 1)]
        )
        marks = _scatter(
            [values.share(one.values[key]) for one in ranked], [one.objective or 0.0 for one in ranked], "markers"
        )
        colors = [_OTHER] * (len(ranked) - 1) + [_BEST]
        marks |= {"marker": {"color": colors, "size": 7}, "text": [_described(one) for one in ranked]}
        marks |= {"hovertemplate": "%{text}<extra></extra>"}
        axis = {"tickvals": [share for share, _ in ticks], "ticktext": [plain(text) for _, text in ticks]}
        layout = {
            "xaxis": {**axis, "range": [-0.08, 1.08], "zeroline": False},
            "yaxis": {"tickformat": "~s" if sweep.minimizes else ""},
            "hovermode": "closest",
        }
        charts.append(Chart(key, [marks], height=SMALL, layout=layout))
    return charts


def _evaluations(trials: Sequence[Trial], ranked: Sequence[Trial], sweep: SweepConfig) -> Chart | None:
    shown = [one for one in trials if one.objective is None and one.evaluations][:MOST_LINES] + list(
        ranked[-MOST_LINES:]
    )
    traces = []
    for one in shown:
        is_best = bool(ranked) and one == ranked[-1]
        color = _BEST if is_best else translucent(_OTHER if one.objective is not None else _MUTED, 0.5)
        points = one.evaluations
        trace = _scatter([step for step, _ in points], [value for _, value in points], "lines+markers", color=color)
        dash = "solid" if one.objective is not None else "dash"
        trace |= {
            "line": {"color": color, "width": 3 if is_best else 1.5, "dash": dash},
            "marker": {"size": 4, "color": color},
        }
        traces.append(
            trace | {"text": [_described(one)] * len(points), "hovertemplate": "%{y:.4~r} · %{text}<extra></extra>"}
        )
    layout = {
        "xaxis": {"title": {"text": "environment steps"}, "tickformat": "~s"},
        "yaxis": {"title": {"text": sweep.objective.metric}},
        "hovermode": "closest",
    }
    return Chart("Evaluations", traces, is_alone=True, height=TALL, layout=layout) if traces else None


def _trials_table(trials: Sequence[Trial], sweep: SweepConfig) -> str:
    columns = ("trial", "state", "objective", *map(escape, sweep.tunables), "time")
    kinds, rows = {"complete": "finished", "fail": "stopped", "running": "running"}, ""
    for one in trials:
        values = [escape(_number(one.values[key])) if key in one.values else NOTHING for key in sweep.tunables]
        state = f'<span class="status {kinds.get(one.state, "")}">{_WORDS[one.state]}</span>'
        state += f"<small>{escape(one.error)}</small>" if one.error else ""
        goal = NOTHING if one.objective is None else escape(_number(one.objective))
        goal += "" if one.final is None else f"<small>finals {escape(_number(one.final))}</small>"
        seconds = one.result.get("seconds")
        time = duration(seconds if isinstance(seconds, float) else None)
        cells = [f"{one.number:04d}", state, goal, *values, time]
        rows += "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
    return table("trials", columns, rows) if trials else "<p>No trial has begun yet.</p>"


def _described(one: Trial) -> str:
    """A trial as the text that appears under the pointer."""
    goal = _WORDS[one.state] if one.objective is None else _number(one.objective)
    return "<br>".join(
        [f"<b>trial {one.number}: {goal}</b>", *(plain(f"{key} {_number(value)}") for key, value in one.values.items())]
    )


def _scatter(x: Sequence[float], y: Sequence[float], mode: str, color: str = _OTHER) -> Trace:
    marker = {"color": color, "size": 7}
    return {"type": "scatter", "mode": mode, "x": rounded(x), "y": rounded(y), "marker": marker, "showlegend": False}


def _mixed(good: float) -> str:
    """From gray to the color of the best."""
    pairs = [(int(_MUTED[at : at + 2], 16), int(_BEST[at : at + 2], 16)) for at in (1, 3, 5)]
    return "#" + "".join(f"{round(bad + (best - bad) * good):02x}" for bad, best in pairs)


def _number(value: Any, digits: int = 4) -> str:
    if not isinstance(value, float) or not math.isfinite(value):
        return str(value)
    return f"{value:,.0f}" if value.is_integer() and abs(value) >= 1000 else f"{value:.{digits}g}"
