"""`diagnose`: reads a run and reports problems, with evidence and remedies; and prints them."""

import statistics
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from surefoot.inspection.alert_findings import alert_findings
from surefoot.inspection.evaluation_record import read_evaluations
from surefoot.inspection.findings import Diagnosis, Evidence, Finding, worst_first
from surefoot.inspection.run_record import RunRecord, lock_holder, read_run
from surefoot.inspection.symptoms import SYMPTOMS
from surefoot.output.terminal import Terminal
from surefoot.settings.config import Config
from surefoot.settings.layers import build_config
from surefoot.statistics.alpha import identical
from surefoot.telemetry import names
from surefoot.telemetry.alerts import ALERTS

_BUSY = 0.2
"""Fraction of time spent waiting for a CPU above which a note is added."""
_FEW = max(alert.window for alert in ALERTS)
_STYLES = {"high": "bold red", "medium": "bold yellow", "low": "bold cyan"}
_MAX_WIDTH = 110


def diagnose(path: Path) -> Diagnosis:
    """Examine a run directory; the run may still be in progress."""
    return diagnosis_of(read_run(path))


def diagnosis_of(run: RunRecord) -> Diagnosis:
    """Examine the records of a run."""
    path, config = run.path, build_config(run.config)
    found = [finding for symptom in SYMPTOMS.values() if (finding := symptom(run, config))]
    step, process = int(run.records[-1]["step"]), lock_holder(path)
    return Diagnosis(
        run=path,
        env=config.env.id,
        step=step,
        total_steps=config.train.steps,
        process=process,
        findings=worst_first([*alert_findings(run, config), *found]),
        notes=tuple(_notes(run, config, process)),
        checked=(*(alert.name for alert in ALERTS), *SYMPTOMS),
    )


def _notes(run: RunRecord, config: Config, process: str | None) -> list[str]:
    """Information that is not a problem."""
    step, total = int(run.records[-1]["step"]), config.train.steps
    notes = []
    if process is not None:
        notes.append(f"the run is still in progress (process {process})")
    elif step < total:
        notes.append(f"the run stopped at step {step:,} of {total:,}; 'surefoot resume {run.path}' continues it")
    if len(run.records) < _FEW:
        notes.append(f"the run has only {len(run.records)} records so far; some alerts need {_FEW} iterations")
    return [*notes, *_speed_notes(run), *_return_note(run), *_evaluation_note(run)]


def _speed_notes(run: RunRecord) -> list[str]:
    rates = [record for record in run.records if {names.ROLLOUT_SECONDS, names.LEARN_SECONDS} <= set(record)]
    if not rates:
        return []
    rollout, learn = (sum(record[name] for record in rates) for name in (names.ROLLOUT_SECONDS, names.LEARN_SECONDS))
    speed = statistics.median(value for _, value in run.series(names.STEPS_PER_SECOND))
    share = rollout / max(rollout + learn, 1e-9)
    notes = [f"{speed:,.0f} steps/s: {share:.0%} of the time in rollouts, {1 - share:.0%} in learning"]
    waits = [value for _, value in run.series(names.CPU_WAIT)]
    if waits and statistics.mean(waits) > _BUSY:
        notes.append(
            f"the run waited for a CPU {statistics.mean(waits):.0%} of the time: other processes keep this machine busy"
        )
    return notes


def _return_note(run: RunRecord) -> list[str]:
    series = run.series(names.EPISODE_REWARD)
    if not series:
        return []
    (_, first), (step, best) = series[0], max(series, key=lambda pair: pair[1])
    rose = f"mean return {first:,.1f} at the start, {series[-1][1]:,.1f} at the end, best {best:,.1f} at step {step:,}"
    if len(series) >= 50 and best - first < 0.05 * (abs(best) + abs(first)):
        rose += "; it has not improved: compare it with known scores for this task"
    return [rose]


def _evaluation_note(run: RunRecord) -> list[str]:
    evaluations = read_evaluations(run.path)
    last = evaluations[max(evaluations)] if evaluations else None
    return [f"last evaluation: {identical(len(last.rewards))}"] if last is not None and last.are_identical else []


def print_diagnosis(diagnosis: Diagnosis, console: Console | None = None) -> None:
    """Print a diagnosis, wrapped to the width of the terminal."""
    console = console or Terminal(highlight=False)
    console.width = min(console.width, _MAX_WIDTH)
    head = f"{diagnosis.env} · {diagnosis.run} · {diagnosis.step:,} of {diagnosis.total_steps:,} steps"
    console.print(Text(head, "dim"), soft_wrap=True)
    if diagnosis.is_healthy:
        console.print(Text(diagnosis.verdict, "bold green"))
    else:
        console.print(Text(diagnosis.verdict, _STYLES[diagnosis.findings[0].severity]))
    for number, finding in enumerate(diagnosis.findings, 1):
        console.print()
        console.print(
            Text.assemble((f"{number}. {finding.title}", _STYLES[finding.severity]), f"  ({finding.severity})")
        )
        console.print(_details(finding))
    console.print()
    console.print(_listed("notes", diagnosis.notes))
    checked = ", ".join(name.replace("_", " ") for name in diagnosis.checked)
    console.print(_listed("checked", [checked]))


def describe(evidence: Evidence) -> str:
    """A metric value with its step."""
    return f"{evidence.metric} {evidence.value:,.4g} at step {evidence.step:,}"


def _details(finding: Finding) -> Table:
    grid = _grid()
    grid.add_row("meaning", Text(finding.meaning))
    grid.add_row("evidence", Text("; ".join([*(describe(evidence) for evidence in finding.evidence), finding.when])))
    for index, remedy in enumerate(finding.remedies):
        grid.add_row("" if index else "try", Text(remedy))
    return grid


def _listed(label: str, lines: tuple[str, ...] | list[str]) -> Table:
    grid = _grid()
    for index, line in enumerate(lines):
        grid.add_row("" if index else label, Text(line))
    return grid


def _grid() -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", width=10, justify="right")
    grid.add_column()
    return grid
