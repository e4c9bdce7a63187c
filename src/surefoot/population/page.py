"""The page about a population: scores per round, the tree of lineages, and the values of settings over time."""

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

from surefoot.errors import PopulationError
from surefoot.inspection.report.charts import SMALL, TALL, Chart
from surefoot.inspection.report.document import Document
from surefoot.inspection.report.tables import table
from surefoot.inspection.report.traces import color_of, plain, swatch_style
from surefoot.population.decisions import ranked
from surefoot.population.display import shown, shown_score
from surefoot.population.files import PopulationFiles
from surefoot.population.log import Entry, PopulationLog
from surefoot.population.replay import REPLAY, lineage
from surefoot.population.settings import Plan, build_plan
from surefoot.settings.layers import read_yaml

Rounds = Sequence[Sequence[Entry]]
_LINEAGE_NOTE = (
    "Each dot is a member after a round, larger for a better rank; crosses failed. Lines lead from the state that a"
    " member continued from; colors are those of the members. The bold line is the winner with its ancestors."
)


def population_page(path: Path, now: datetime | None = None) -> str:
    """The page as self-contained HTML."""
    files = PopulationFiles(path)
    plan = build_plan(read_yaml(files.config))
    rounds = PopulationLog(files.log, plan.population.members).read()
    if not rounds:
        raise PopulationError(f"{path} has no finished round yet; there is nothing to report")
    page = Document()
    page.add("Summary", _table(rounds, plan) + _replay(path), "Members after the last round, best first.")
    objective = (
        f"Score by <code>{escape(plan.population.objective)}</code>, higher is better; error bars: 95% interval."
    )
    page.add("Scores", page.figure(_scores(rounds)), objective)
    page.add("Lineage", page.figure(_tree(rounds)), _LINEAGE_NOTE)
    note = "Values in each round; a member that takes over another one starts from its values."
    page.add("Values", page.small_figures([_values(rounds, plan, name) for name in plan.names]), note)
    page.add("Changes", _changes(rounds), "Members that continued from another one, with the values they changed to.")
    facts = (
        path.resolve().name,
        f"{plan.population.members} members",
        f"{len(rounds)} rounds of {plan.population.iterations} iterations",
        f"{max(entry.step for entry in rounds[-1]):,} of {plan.config.train.steps:,} steps per member",
        f"seed {plan.population.seed}",
        f"written {now or datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
    )
    lead = " · ".join(escape(fact) for fact in facts)
    heading = f"Population on {plan.config.env.id}"
    return page.html(heading, lead, _chips(plan), {"steps": "", "time": ""})


def _replay(path: Path) -> str:
    """Where the replay of the winner is, if there is one."""
    run = path / REPLAY
    if not (run / "config.yaml").is_file():
        return ""
    page = run / "report.html"
    text = f"<code>surefoot report {escape(str(run))}</code>"
    link = f'<a href="{REPLAY}/{page.name}">its report</a>' if page.is_file() else f"{text} writes its report"
    return f"<p class='note'>The winner was replayed as one run in <code>{escape(str(run))}</code>: {link}.</p>"


def _chips(plan: Plan) -> str:
    chips = "".join(
        f'<button type="button" class="chip" data-group="{member}" aria-pressed="true"'
        f' style="{swatch_style(member)}">member {member:02d}</button>'
        for member in range(plan.population.members)
    )
    return f'<div class="legend">{chips}</div>'


def _axis(rounds: Rounds) -> dict[str, Any]:
    return {
        "title": {"text": "round"},
        "range": [0.5, len(rounds) + 0.5],
        "tickformat": "d",
        "dtick": 1 if len(rounds) < 20 else None,
    }


def _by_member(rounds: Rounds) -> list[list[Entry]]:
    return [list(entries) for entries in zip(*rounds, strict=True)]


def _scores(rounds: Rounds) -> Chart:
    traces = []
    for member, entries in enumerate(_by_member(rounds)):
        known = [(entry, entry.score) for entry in entries if entry.score is not None]
        spans = [entry.interval or [score, score] for entry, score in known]
        above = [span[1] - score for (_, score), span in zip(known, spans, strict=True)]
        below = [score - span[0] for (_, score), span in zip(known, spans, strict=True)]
        bars = {"type": "data", "symmetric": False, "array": above, "arrayminus": below, "thickness": 1, "width": 2}
        traces.append(
            {
                "x": [entry.round for entry, _ in known],
                "y": [score for _, score in known],
                "error_y": {**bars, "color": color_of(member)},
                **_style(member, "lines+markers"),
            }
        )
    layout = {"xaxis": _axis(rounds), "yaxis": {"title": {"text": "score"}}, "hovermode": "closest"}
    return Chart("Scores", traces, is_alone=True, height=TALL, layout=layout)


def _style(member: int, mode: str) -> dict[str, Any]:
    line = {"color": color_of(member), "width": 1.5}
    return {"name": f"member {member:02d}", "mode": mode, "line": line, "group": member, "showlegend": False}


def _tree(rounds: Rounds) -> Chart:
    """Round r of a member is at (r, member); its line comes from the member whose state it continued from."""
    winner = lineage(rounds)
    path = {"x": [entry.round for entry in winner], "y": [entry.member for entry in winner], "mode": "lines"}
    bold = {"line": {"color": "#888888", "width": 7}, "opacity": 0.4, "hoverinfo": "skip", "showlegend": False}
    traces: list[dict[str, Any]] = [{**path, **bold}]
    ranks = [{member: place for place, member in enumerate(_order(entries))} for entries in rounds]
    for member, entries in enumerate(_by_member(rounds)):
        x: list[Any] = []
        y: list[Any] = []
        for before in entries[:-1]:
            x += [before.round, before.round + 1, None]
            y += [before.parent, member, None]
        traces.append({"x": x, "y": y, "hoverinfo": "skip", **_style(member, "lines")})
    for member, entries in enumerate(_by_member(rounds)):
        sizes = [7 + 11 * (1 - ranks[entry.round - 1][member] / (len(ranks[0]) - 1)) for entry in entries]
        symbols = ["x" if entry.has_failed else "circle" for entry in entries]
        marker = {"color": color_of(member), "size": sizes, "symbol": symbols, "opacity": 1}
        texts = [plain(_told(entry)) for entry in entries]
        dots = {"x": [entry.round for entry in entries], "y": [member] * len(entries), "text": texts}
        traces.append({**dots, "marker": marker, "hoverinfo": "text", **_style(member, "markers")})
    members = list(range(len(rounds[0])))
    labels = {"tickvals": members, "ticktext": [f"{member:02d}" for member in members], "autorange": "reversed"}
    layout = {"xaxis": _axis(rounds), "yaxis": {**labels, "title": {"text": "member"}}, "hovermode": "closest"}
    return Chart("Lineage", traces, is_alone=True, height=max(SMALL, 70 + 34 * len(members)), layout=layout)


def _told(entry: Entry) -> str:
    result = f"failed: {entry.error}" if entry.has_failed else f"score {shown_score(entry.score, entry.interval)}"
    values = ", ".join(f"{name} {shown(value)}" for name, value in entry.values.items())
    return f"member {entry.member:02d}, round {entry.round}: {result}; {values}"


def _values(rounds: Rounds, plan: Plan, name: str) -> Chart:
    scale = plan.population.tunables[name].scale
    traces = []
    for member, entries in enumerate(_by_member(rounds)):
        style = _style(member, "lines+markers")
        line = {**style["line"], "shape": "hv"}
        points = {"x": [entry.round for entry in entries], "y": [entry.values[name] for entry in entries]}
        traces.append({**points, **style, "line": line, "marker": {"size": 4}})
    layout = {"xaxis": _axis(rounds), "yaxis": {"type": "log"} if scale == "log" else {}, "hovermode": "closest"}
    return Chart(name, traces, note=f"{scale} scale", layout=layout)


def _order(entries: Sequence[Entry]) -> list[int]:
    return ranked([entry.score for entry in entries], [entry.has_failed for entry in entries])


def _table(rounds: Rounds, plan: Plan) -> str:
    last = rounds[-1]
    columns = ["member", "score", "95% interval", "steps", "taken over", "failed", *map(escape, plan.names)]
    rows = ""
    for member in _order(last):
        entry, history = last[member], [entries[member] for entries in rounds]
        taken = sum(one.parent != one.member for one in history)
        interval = f"{shown(entry.interval[0])} to {shown(entry.interval[1])}" if entry.interval else "-"
        cells = [
            shown(entry.score),
            interval,
            f"{entry.step:,}",
            str(taken),
            str(sum(one.has_failed for one in history)),
        ]
        cells += [shown(entry.values[name]) for name in plan.names]
        dot = f'<i class="swatch" style="{swatch_style(member)}"></i>'
        rows += f"<tr><th>{dot}{member:02d}</th>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
    return table("changes", columns, rows)


def _changes(rounds: Rounds) -> str:
    rows = ""
    for entry in (one for entries in rounds for one in entries if one.parent != one.member):
        donor = rounds[entry.round - 1][entry.parent]
        changes = ", ".join(
            f"{name} {shown(donor.values[name])} → {shown(value)}" for name, value in entry.next_values.items()
        )
        cells = (f"{entry.member:02d}", f"{entry.parent:02d}", shown(entry.score), shown(donor.score), changes)
        rows += f"<tr><th>{entry.round}</th>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
    columns = ("after round", "member", "from", "its score", "their score", "values")
    return table("changes", columns, rows) if rows else ""
