"""One self-contained HTML page about one or several runs."""

import shlex
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path

from surefoot.inspection.report.alert_lanes import alerts_chart
from surefoot.inspection.report.charts import (
    MOST_POINTS,
    MOST_POINTS_SMALL,
    diagnostic_charts,
    env_metric_charts,
    evaluation_chart,
    learning_chart,
)
from surefoot.inspection.report.document import Document, headed
from surefoot.inspection.report.remedies import remedies
from surefoot.inspection.report.reported_run import ReportedRun, with_distinct_names
from surefoot.inspection.report.returns import MOST_RUNS, return_charts, return_table, runs_of, shown_evaluations
from surefoot.inspection.report.run_groups import SEED, Group, flat, group_runs, settings_of
from surefoot.inspection.report.tables import all_settings, differences_table, summary_table, swatch
from surefoot.inspection.report.timings import MOST_PHASE_CHARTS, timing_charts, totals_chart
from surefoot.inspection.report.traces import swatch_style, time_unit
from surefoot.inspection.report.videos import VIDEOS_NOTE, videos_of
from surefoot.inspection.run_record import RunRecord

_RETURNS_NOTE = (
    "Returns of single episodes in the last evaluation, and in the best one by <code>train.best_metric</code>. Red: the"
    " worst share of the episodes (<code>train.cvar_alpha</code>); VaR: the quantile at its edge; CVaR: its mean."
    " Columns from 5% to 95%: quantiles. Small numbers: 95% bootstrap intervals."
)
_ALERT_NOTE = "When each alert was active."
_DOCTOR_NOTE = "Below: what <code>surefoot doctor</code> finds, and what to try."
_WHY_DIFFERENT = (
    "<b>Why evaluations and training returns differ.</b> An evaluation plays complete episodes with the most likely"
    " action of the policy at that step. Training samples its actions, so its returns include the noise of exploration,"
    " and its curve is a mean over the last 100 episodes, some of them played by earlier policies. Evaluations are"
    " therefore usually higher and ahead; one far below the curve means that the policy relies on its noise."
)
_REPRODUCE_NOTE = (
    "The same bits on machines with the same kind of processor and the same versions of Surefoot and PyTorch."
)
MOST_LISTED = 20
"""Runs of a group whose commands are listed."""


class Page(Document):
    """The document with the runs that it is about."""

    def __init__(self, runs: Sequence[RunRecord]) -> None:
        super().__init__()
        self.runs = with_distinct_names(runs)
        self.groups = group_runs(self.runs)
        self.has_time = all(run.seconds is not None for run in self.runs)
        self.unit = time_unit(max(run.total_seconds for run in self.runs))


def report_page(runs: Sequence[RunRecord], now: datetime | None = None, folder: Path | None = None) -> str:
    """The page as self-contained HTML: it needs no network and no other files but large videos.

    These are linked from `folder`, in which the page will be.
    """
    page = Page(runs)
    _fill(page, folder or page.runs[0].path)
    axes = {"steps": "environment steps", "time": f"training time ({page.unit.name})"}
    return page.html(
        _title(page.groups), _lead(page, now or datetime.now(UTC)), controls_of(page.groups, page.has_time), axes
    )


def _fill(page: Page, folder: Path) -> None:
    """The sections, from results and diagnostics to cost and differences between runs."""
    groups, unit = page.groups, page.unit
    page.add("Summary", summary_table(groups), "Final return: mean of the last 100 training episodes.")
    learning = _by_env(page, lambda mine: page.figure(learning_chart(mine, unit)))
    nothing = "<p>No episode has ended yet, so there is no return to show.</p>"
    page.add("Learning", (learning or nothing) + _why_different(page), _learning_note(page))
    alerts, found = _by_env(page, lambda mine: page.figure(alerts_chart(mine, unit))), remedies(groups)
    notes = [_ALERT_NOTE if alerts else "", _DOCTOR_NOTE if found else ""]
    page.add("Alerts", (alerts or "<p>No alert was raised.</p>") + found, " ".join(note for note in notes if note))
    evaluation = _by_env(page, lambda mine: page.figure(evaluation_chart(mine, unit)))
    page.add("Evaluation", evaluation, "The evaluations of every run; error bars: one std over the episodes.")
    page.add("Returns", _by_env(page, lambda mine: _returns(page, mine)), _RETURNS_NOTE)
    page.add("Videos", videos_of(page.runs, folder), VIDEOS_NOTE)
    page.add("Environment", _by_env(page, lambda mine: page.small_figures(env_metric_charts(mine, unit))))
    page.add("Diagnostics", _by_env(page, lambda mine: page.small_figures(diagnostic_charts(mine, unit))))
    page.add(
        "Timing",
        page.figure(totals_chart(groups)) + _by_env(page, lambda mine: page.small_figures(timing_charts(mine, unit))),
        _timing_note(page),
    )
    page.add("Reproduce", reproduction(groups), _REPRODUCE_NOTE)
    page.add("Settings", _settings(page))


def _returns(page: Page, groups: list[Group]) -> str:
    evaluations = shown_evaluations(groups)
    few = f"<p class='note'>Histograms are shown for the first {MOST_RUNS} runs.</p>"
    limit = few if len(runs_of(evaluations)) > MOST_RUNS else ""
    return page.small_figures(return_charts(evaluations)) + limit + return_table(evaluations)


def _by_env(page: Page, draw: Callable[[list[Group]], str]) -> str:
    """The same content per env: returns and lengths of different tasks are not comparable."""
    envs = list(dict.fromkeys(group.env for group in page.groups))
    return headed({env: draw([group for group in page.groups if group.env == env]) for env in envs})


def _learning_note(page: Page) -> str:
    notes = ["Line: smoothed as selected above; faint line: raw values."]
    if any(run.evaluated for run in page.runs):
        notes.append("Diamonds: evaluations, with error bars of one std over the episodes.")
    else:
        notes.append("No evaluation was recorded.")
    if any(len(group.runs) > 1 for group in page.groups):
        notes.append(
            "Runs that differ only in their seed are shown as one curve: their mean, with a band of its 95% bootstrap"
            " interval, or from the lower to the higher of two runs (the error bars of the diamonds show the same)."
        )
    longest = max(len(run.records) for run in page.runs)
    if longest > MOST_POINTS_SMALL:
        notes.append(
            f"Long curves are downsampled to {MOST_POINTS:,} points ({MOST_POINTS_SMALL} in small charts);"
            f" the longest run has {longest:,} records. Curves of single runs keep their minima and maxima."
        )
    return " ".join(notes)


def _why_different(page: Page) -> str:
    is_evaluated = any(run.evaluated for run in page.runs)
    return f"<p class='note'>{_WHY_DIFFERENT}</p>" if is_evaluated else ""


def _timing_note(page: Page) -> str:
    most = max(sum(group.env == other.env for other in page.groups) for group in page.groups)
    if most <= MOST_PHASE_CHARTS:
        return ""
    return f"Seconds per iteration are shown for the first {MOST_PHASE_CHARTS} configurations of an environment."


def _settings(page: Page) -> str:
    several = len(page.runs) > 1
    differences = differences_table(page.groups) or ("<p>All runs have the same settings.</p>" if several else "")
    return differences + "".join(all_settings(group) for group in page.groups)


def _title(groups: Sequence[Group]) -> str:
    envs = list(dict.fromkeys(group.env for group in groups))
    return ", ".join(envs[:3]) + (f" and {len(envs) - 3} more" if len(envs) > 3 else "")


def _lead(page: Page, now: datetime) -> str:
    """The runs in one line."""
    count = len(page.runs)
    configured = (
        flat(run.config).get("rollout.engine.kind", flat(run.config).get("rollout.engine")) for run in page.runs
    )
    used = [run.log.engine or engine for run, engine in zip(page.runs, configured, strict=True)]
    engines = list(dict.fromkeys(engine for engine in used if engine))
    seeds = list(dict.fromkeys(settings_of(run)[SEED] for run in page.runs))
    versions = dict.fromkeys(found for run in page.runs if (found := run.log.versions))
    facts = [
        page.runs[0].name if count == 1 else f"{count} runs, {_counted(len(page.groups), 'configuration')}",
        f"seed{'s' * (len(seeds) > 1)} {', '.join(seeds)}",
        f"{sum(int(run.records[-1]['step']) for run in page.runs):,} steps in total" if count > 1 else "",
        f"engine {', '.join(engines)}" if engines else "",
        f"{', '.join(_values(page, 'rollout.num_envs'))} envs" if _values(page, "rollout.num_envs") else "",
        *versions,
        f"written {now:%Y-%m-%d %H:%M} UTC",
    ]
    return " · ".join(escape(fact) for fact in facts if fact)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


def _values(page: Page, key: str) -> list[str]:
    return list(dict.fromkeys(value for run in page.runs if (value := flat(run.config).get(key))))


def controls_of(groups: Sequence[Group], has_time: bool) -> str:
    """Legend and switches that apply to all charts."""
    chips = "".join(
        f'<button type="button" class="chip" data-group="{group.index}" aria-pressed="true"'
        f' style="{swatch_style(group.index)}">{escape(group.label)}'
        f"{_how_many(group)}</button>"
        for group in groups
    )
    axes = ("steps", "time") if has_time else ()
    return f'<div class="legend">{chips}</div>{_switch("smoothing", "off", "light", "strong")}{_switch("axis", *axes)}'


def _how_many(group: Group) -> str:
    count = len(group.runs)
    is_repeated = len({settings_of(run)[SEED] for run in group.runs}) < count
    return f" · {count} {'runs' if is_repeated else 'seeds'}" if count > 1 else ""


def _switch(name: str, *choices: str) -> str:
    label = {"smoothing": "Smoothing", "axis": "X axis"}[name]
    buttons = "".join(f'<button type="button" data-{name}="{choice}">{choice}</button>' for choice in choices)
    return (
        f'<div class="switch" role="group" aria-label="{label}"><span>{label}</span>{buttons}</div>' if choices else ""
    )


def repeating_command(run: ReportedRun) -> str:
    """The command that repeats a run from its config, in a new directory."""
    config, new = shlex.quote(str(run.path / "config.yaml")), shlex.quote(f"{run.path}-again")
    return f"surefoot train --config {config} --run-dir {new}"


def reproduction(groups: Sequence[Group]) -> str:
    """The commands of each group as HTML."""
    several = len(groups) > 1
    return "".join(
        (f"<h3>{swatch(group)}{escape(group.label)}</h3>" if several else "") + _of(group) for group in groups
    )


def _of(group: Group) -> str:
    runs = group.runs[:MOST_LISTED]
    typed = list(dict.fromkeys(command for run in runs for command in run.log.commands))
    parts = [_block("The same settings and seed again:", [repeating_command(run) for run in runs])]
    if typed:
        parts.append(_block("Typed originally:", typed))
    if any(command.startswith("surefoot resume") for command in typed):
        parts.append(
            "<p class='note'>The run was resumed: config.yaml has the settings after the last resume, which it repeats"
            " from the first step on.</p>"
        )
    return "".join(parts)


def _block(title: str, commands: Sequence[str]) -> str:
    return f"<p class='note'>{title}</p><pre><code>{escape(chr(10).join(commands))}</code></pre>"
