"""Prints a diagnosis: the verdict, then each finding with its evidence and remedies."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from surefoot.inspection.findings import Diagnosis, Evidence, Finding
from surefoot.output.terminal import Terminal

_STYLES = {"high": "bold red", "medium": "bold yellow", "low": "bold cyan"}
_MAX_WIDTH = 110


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
