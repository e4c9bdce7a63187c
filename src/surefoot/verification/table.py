"""Shows a report in the terminal."""

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from surefoot.verification.report import Component, Measure, Report

NOTHING = "\N{EN DASH}"
_STYLES = {"ok": "green", "DIFFERS": "bold red", "not applicable": "dim"}


def show(report: Report, console: Console) -> None:
    """Print the table and a one-line summary."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, title_justify="left", title_style="bold")
    table.title = Text(_title(report))
    table.add_column("component")
    table.add_column("compared")
    table.add_column("largest\ndifference", justify="right", no_wrap=True)
    table.add_column("tolerance", justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    previous = ""
    for part in report.components:
        table.add_row(*_cells(part, part.name == previous))
        previous = part.name
    console.print(table)
    console.print(Text(summary(report), style="bold green" if report.ok else "bold red"))


def summary(report: Report) -> str:
    """One line that says whether everything holds, or what differs."""
    compared = [part for part in report.components if part.verdict != "not applicable"]
    if not report.ok:
        return f"{report.target}: DIFFERS in {', '.join(report.differing)}"
    if report.path == "native":
        return f"{report.target}: ok, the native path equals the readable one in all {len(compared)} comparisons"
    return f"{report.target}: ok, keeps all {len(compared)} promises of the protocol"


def _title(report: Report) -> str:
    path = "native against readable" if report.path == "native" else "checked against the protocol"
    return f"surefoot verify {report.target}, seed {report.seed}: {path}"


def _cells(part: Component, is_repeated: bool) -> list[Text]:
    compared = Text(part.compared)
    if part.note:
        compared.append(f"\n{part.note}", style=_STYLES[part.verdict] if part.verdict == "DIFFERS" else "dim")
    return [
        Text("" if is_repeated else part.name),
        compared,
        Text(_number(part.difference, part.measure)),
        Text("bits" if part.measure == "bits" else _number(part.tolerance, part.measure)),
        Text("n/a" if part.verdict == "not applicable" else part.verdict, style=_STYLES[part.verdict]),
    ]


def _number(value: float | None, measure: Measure) -> str:
    if value is None:
        return NOTHING
    if measure == "count":
        return f"{value:,.0f}"
    return "0" if value == 0 else f"{value:.1e}"
