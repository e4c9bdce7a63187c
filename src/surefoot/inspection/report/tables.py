"""The tables of the page as HTML. All text from files is escaped."""

from collections.abc import Callable, Sequence
from html import escape
from statistics import fmean

from surefoot.inspection.report.reported_run import ReportedRun
from surefoot.inspection.report.run_groups import SEED, Group, differing_keys, flat, settings_of
from surefoot.inspection.report.run_summary import RunSummary, summarize
from surefoot.inspection.report.traces import swatch_style

NOTHING = "&ndash;"
_LONGEST = 160
"""Characters of an error in the summary."""
COLUMNS = ("run", "status", "final return", "best evaluation", "steps", "time", "steps/s", "alerts")


def number(value: float | None, decimals: int = 1) -> str:
    """A number with thousands separators and a real minus sign; a dash for None."""
    return NOTHING if value is None else f"{value:,.{decimals}f}".replace("-", "\N{MINUS SIGN}")


def figure(value: float) -> str:
    """A return with about three digits."""
    return number(value, 0 if abs(value) >= 1000 else 1 if abs(value) >= 100 else 2)


def duration(seconds: float | None) -> str:
    """`1 h 02 min`, `3 min 05 s` or `8.2 s`."""
    if seconds is None:
        return NOTHING
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours:,} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{seconds:.1f} s"


def swatch(group: Group) -> str:
    """A dot in the color of the group."""
    return f'<i class="swatch" style="{swatch_style(group.index)}"></i>'


def summary_table(groups: Sequence[Group]) -> str:
    """One row per run; a group of several runs has an additional row above them."""
    rows = []
    for group in groups:
        summaries = [summarize(run) for run in group.runs]
        if len(group.runs) > 1:
            rows.append(_group_row(group, summaries))
        rows += [_run_row(group, run, found) for run, found in zip(group.runs, summaries, strict=True)]
    return table("summary", COLUMNS, "".join(rows))


def differences_table(groups: Sequence[Group]) -> str:
    """Only the settings that differ, with one column per group that lists the values of its runs; may be empty."""
    configs = [[flat(run.config) for run in group.runs] for group in groups]
    keys = differing_keys([settings_of(run) for group in groups for run in group.runs])
    if not keys:
        return ""
    rows = ""
    for key in keys:
        values = [", ".join(dict.fromkeys(config.get(key, "not set") for config in group)) for group in configs]
        cells = "".join(f"<td>{escape(value)}</td>" for value in values)
        rows += f"<tr><th>{escape(key)}</th>{cells}</tr>"
    return table("settings", ["setting", *(f"{swatch(group)}{escape(group.label)}" for group in groups)], rows)


def all_settings(group: Group) -> str:
    """All settings of the first run of a group, collapsed."""
    run = group.runs[0]
    rows = "".join(
        f"<tr><th>{escape(key)}</th><td>{escape(value)}</td></tr>" for key, value in flat(run.config).items()
    )
    title = f"{swatch(group)}All settings of {escape(run.name)}"
    return (
        f'<details><summary>{title}</summary><div class="wide"><table class="settings">{rows}</table></div></details>'
    )


def _run_row(group: Group, run: ReportedRun, found: RunSummary) -> str:
    is_member = len(group.runs) > 1
    name = f"{'' if is_member else swatch(group)}<b>{escape(run.name)}</b>"
    label = "" if is_member or group.label == run.name else f" · {escape(group.label)}"
    best = NOTHING
    if found.best is not None:
        spread = "" if found.best.std is None else f" ± {number(found.best.std)}"
        best = f"{number(found.best.reward)}{spread}<small>at step {found.best.step:,}</small>"
    cells = (
        f"{name}<small>seed {escape(settings_of(run)[SEED])}{label}</small>",
        _status(found),
        number(found.final_return),
        best,
        f"{found.steps:,}",
        duration(found.seconds),
        number(found.steps_per_second, 0),
        _alerts(found),
    )
    return _row(cells, "member" if is_member else "")


def _status(found: RunSummary) -> str:
    """The colored status, how far an unfinished run came, and what is wrong: no green above active alerts."""
    active = found.active_alerts
    kind = "warned" if active and found.status == "finished" else found.status
    word = f'<span class="status {kind}">{found.status}</span>'
    share = f" of {found.planned:,} ({found.steps / found.planned:.0%})" if found.planned else ""
    is_short = found.planned is None or found.steps < found.planned
    lines = [f"at {found.steps:,}{share}" if found.status != "finished" or is_short else ""]
    lines += [
        escape(_shortened(found.why)),
        f"{len(active)} alert{'s' * (len(active) > 1)} still active" * bool(active),
    ]
    return word + "".join(f"<small>{line}</small>" for line in lines if line)


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _alerts(found: RunSummary) -> str:
    """How often each alert was raised, as text."""
    raised = [span.label for span in found.alerts]
    counted = [
        f"{escape(label)}{f' &times;{raised.count(label)}' if raised.count(label) > 1 else ''}"
        for label in dict.fromkeys(raised)
    ]
    return f"{len(raised)}<small>{', '.join(counted)}</small>" if raised else "none"


def _group_row(group: Group, summaries: Sequence[RunSummary]) -> str:
    """Mean, minimum and maximum over the group."""

    def mean(read: Callable[[RunSummary], float | None], decimals: int = 1) -> str:
        values = [value for found in summaries if (value := read(found)) is not None]
        if not values:
            return NOTHING
        low, high = number(min(values), decimals), number(max(values), decimals)
        return f"{number(fmean(values), decimals)}<small>{low} to {high}</small>"

    finished = sum(found.status == "finished" for found in summaries)
    times = [found.seconds for found in summaries if found.seconds is not None]
    cells = (
        f"{swatch(group)}<b>{escape(group.label)}</b><small>mean of {len(group.runs)} runs</small>",
        f"{finished} of {len(summaries)} finished",
        mean(lambda found: found.final_return),
        mean(lambda found: found.best.reward if found.best else None),
        number(fmean(found.steps for found in summaries), 0),
        duration(fmean(times)) if times else NOTHING,
        mean(lambda found: found.steps_per_second, 0),
        str(sum(len(found.alerts) for found in summaries) or "none"),
    )
    return _row(cells, "group")


def table(kind: str, columns: Sequence[str], rows: str) -> str:
    """A table, with headings and rows in HTML, that scrolls by itself if it is too wide."""
    head = "".join(f"<th>{column}</th>" for column in columns)
    return f'<div class="wide"><table class="{kind}"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _row(cells: Sequence[str], kind: str) -> str:
    content = "".join(f'<td data-label="{column}">{cell}</td>' for column, cell in zip(COLUMNS, cells, strict=True))
    return f'<tr class="{kind}">{content}</tr>'
