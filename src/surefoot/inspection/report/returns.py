"""Returns of single episodes: histograms with the tail marked, and a table of risk figures with intervals."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any

import numpy as np

from surefoot.errors import ConfigError
from surefoot.inspection.evaluation_record import EvaluatedEpisodes
from surefoot.inspection.report.charts import Chart
from surefoot.inspection.report.curves import Floats
from surefoot.inspection.report.reported_run import ReportedRun
from surefoot.inspection.report.run_groups import Group
from surefoot.inspection.report.run_summary import summarize
from surefoot.inspection.report.tables import NOTHING, figure, swatch, table
from surefoot.inspection.report.traces import Trace, color_of, rounded, translucent
from surefoot.statistics.alpha import DEFAULT_ALPHA, check_alpha, identical, percent, too_few
from surefoot.statistics.risk import Estimate, Risk, risk_of, tail_weights

MOST_RUNS = 6
"""Runs of an env with histograms; the table has all runs."""
_TAIL_COLOR = "#d8433b"
_SMALLEST = 1e-300
_HEADROOM = 1.45
"""Space above the bars for two labels."""


@dataclass(frozen=True)
class Shown:
    """An evaluation of a run with its role: last, best or both."""

    group: Group
    run: ReportedRun
    role: str
    episodes: EvaluatedEpisodes

    @property
    def alpha(self) -> float:
        """train.cvar_alpha of the run, or its default."""
        train = self.run.config.get("train")
        try:
            return check_alpha(train.get("cvar_alpha") if isinstance(train, dict) else None)
        except ConfigError:
            return DEFAULT_ALPHA

    @cached_property
    def risk(self) -> Risk:
        """The figures."""
        return risk_of(self.episodes.rewards, self.alpha, self.episodes.wins)

    @property
    def title(self) -> str:
        """Such as `Last evaluation, step 40,960`."""
        return f"{self.role} evaluation, step {self.episodes.step:,}"


@dataclass(frozen=True)
class Bins:
    """Counts of returns by bin; the alpha quantile (VaR) is an edge."""

    edges: Floats
    tail: Floats
    """Episodes of the worst alpha share: whole ones, and a part of the last one."""
    rest: Floats


def shown_evaluations(groups: Sequence[Group]) -> list[Shown]:
    """The last and the best evaluation of each run whose single returns were recorded."""
    return [shown for group in groups for run in group.runs for shown in _of_run(group, run)]


def _of_run(group: Group, run: ReportedRun) -> Iterator[Shown]:
    found, best = run.evaluations, summarize(run).best
    if not found:
        return
    last = max(found)
    is_best = best is not None and best.step == last
    yield Shown(group, run, "Last and best" if is_best else "Last", found[last])
    if best is not None and not is_best and best.step in found:
        yield Shown(group, run, "Best", found[best.step])


def return_charts(evaluations: Sequence[Shown]) -> list[Chart]:
    """Histograms of the first runs."""
    first = runs_of(evaluations)[:MOST_RUNS]
    return [_histogram(shown) for shown in evaluations if shown.run.name in first]


def runs_of(evaluations: Sequence[Shown]) -> list[str]:
    """The runs, by their unique names."""
    return list(dict.fromkeys(shown.run.name for shown in evaluations))


def _histogram(shown: Shown) -> Chart:
    var = float(np.quantile(shown.episodes.rewards, shown.alpha))
    bins = bins_of(shown.episodes.rewards, shown.alpha, var)
    share, color = percent(shown.alpha), color_of(shown.group.index)
    highest = float((bins.tail + bins.rest).max())
    traces = [
        _bars(bins, bins.tail, f"worst {share}", _TAIL_COLOR),
        _bars(bins, bins.rest, "other episodes", translucent(color, 0.55)),
    ]
    marks = _marks(bins, share, shown.risk.cvar.value, var)
    layout = {
        "barmode": "stack",
        "bargap": 0,
        "hovermode": "closest",
        "shapes": [line for line, _ in marks],
        "annotations": [label for _, label in marks],
        "xaxis": {"title": {"text": "return"}, "range": rounded([bins.edges[0], bins.edges[-1]], 9)},
        "yaxis": {
            "title": {"text": "episodes"},
            "range": [0, _HEADROOM * highest],
            "dtick": max(1, int(np.ceil(highest / 4))),
        },
    }
    note = f"{shown.run.name}, {len(shown.episodes.rewards):,} episodes"
    return Chart(shown.title, traces, note=note, group=shown.group.index, layout=layout)


def bins_of(rewards: Sequence[float], alpha: float, var: float) -> Bins:
    """10 to 30 bins of equal width around the VaR; one bin if all returns are equal."""
    ascending = np.sort(np.asarray(rewards, dtype=np.float64))
    count, low, high = len(ascending), ascending[0], ascending[-1]
    tail = tail_weights(np.ones(count), alpha)
    if high - low <= max(1e-9 * max(abs(low), abs(high)), _SMALLEST):
        half = max(abs(low) / 100, 0.5)
        return Bins(np.array([low - half, low + half]), tail.sum(keepdims=True), count - tail.sum(keepdims=True))
    width = (high - low) / np.clip(2 * np.sqrt(count), 10, 30).round()
    below, above = (int(np.ceil(share / width)) for share in (var - low, high - var))
    places = np.clip(np.floor((ascending - var) / width).astype(int) + below, 0, below + above - 1)
    counts, in_tail = (np.bincount(places, share, below + above).astype(np.float64) for share in (np.ones(count), tail))
    return Bins(var + width * np.arange(-below, above + 1), in_tail, counts - in_tail)


def _bars(bins: Bins, counts: Floats, name: str, color: str) -> Trace:
    starts, ends = bins.edges[:-1], bins.edges[1:]
    ranges = [f"{figure(start)} to {figure(end)}" for start, end in zip(starts, ends, strict=True)]
    return {
        "type": "bar",
        "name": name,
        "x": rounded((starts + ends) / 2, 9),
        "y": rounded(counts),
        "width": rounded(ends - starts, 9),
        "marker": {"color": color, "line": {"width": 0}},
        "customdata": ranges,
        "hovertemplate": "%{customdata}: %{y:.3~g}<extra>" + name + "</extra>",
        "showlegend": False,
    }


def _marks(bins: Bins, share: str, cvar: float, var: float) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Lines at CVaR and VaR. The line whose label points at the other line is the higher one, so they do not cross."""
    low, high = bins.edges[0], bins.edges[-1]
    is_left = (cvar + var) / 2 < (low + high) / 2
    tops = (1.0, 0.86) if is_left else (0.86, 1.0)
    return [
        _mark(cvar, f"CVaR {share}: {figure(cvar)}", tops[0], "solid", is_left or cvar < low + 0.4 * (high - low)),
        _mark(var, f"VaR {share}: {figure(var)}", tops[1], "dash", is_left and var < low + 0.6 * (high - low)),
    ]


def _mark(at: float, text: str, top: float, dash: str, to_right: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """A vertical line and its label."""
    line = {"type": "line", "x0": at, "x1": at, "yref": "paper", "y0": 0, "y1": top}
    line |= {"line": {"color": _TAIL_COLOR, "width": 1.5, "dash": dash}}
    label = {"x": at, "xanchor": "left" if to_right else "right", "yref": "paper", "y": top, "yanchor": "top"}
    return line, {**label, "text": text, "showarrow": False, "font": {"size": 11}}


def return_table(evaluations: Sequence[Shown]) -> str:
    """One row per evaluation; small numbers are 95% bootstrap intervals."""
    if not evaluations:
        return ""
    has_wins = any(shown.risk.win_rate is not None for shown in evaluations)
    alphas = {shown.alpha for shown in evaluations}
    cvar = f"CVaR {percent(alphas.pop())}" if len(alphas) == 1 else "CVaR"
    columns = ["evaluation", "mean", cvar, *map(percent, evaluations[0].risk.quantiles), "worst", "mean / std"]
    rows = "".join(f"<tr>{''.join(_cells(shown, has_wins, bool(alphas)))}</tr>" for shown in evaluations)
    problems = dict.fromkeys(problem for shown in evaluations for problem in _problems(shown))
    notes = "".join(f"<p class='note'>Note: {escape(problem)}.</p>" for problem in problems)
    return table("risk", [*columns, *["win rate"] * has_wins], rows) + notes


def _problems(shown: Shown) -> Iterator[str]:
    """What makes the figures of an evaluation unreliable."""
    count = len(shown.episodes.rewards)
    if problem := too_few(count, shown.alpha):
        yield problem
    if shown.episodes.are_identical:
        yield f"{shown.run.name}, {shown.title[0].lower()}{shown.title[1:]}: {identical(count)}"


def _cells(shown: Shown, has_wins: bool, has_alphas: bool) -> Iterator[str]:
    risk, count = shown.risk, len(shown.episodes.rewards)
    name = f"{swatch(shown.group)}<b>{escape(shown.run.name)}</b>"
    yield f"<td>{name}<small>{escape(shown.title)}, {count:,} episodes</small></td>"
    yield _figure(risk.mean)
    yield _figure(risk.cvar, f"worst&nbsp;{percent(risk.alpha)}" if has_alphas else "")
    yield from map(_figure, risk.quantiles.values())
    yield f"<td>{figure(risk.worst_reward)}<small>episode&nbsp;{risk.worst_episode}</small></td>"
    yield _figure(risk.sharpe)
    if has_wins:
        yield _figure(risk.win_rate)


def _figure(found: Estimate | None, extra: str = "") -> str:
    if found is None:
        return f"<td>{NOTHING}</td>"
    more = f"<small>{extra}</small>" if extra else ""
    return f"<td>{figure(found.value)}<small>{figure(found.low)}&nbsp;to {figure(found.high)}</small>{more}</td>"
