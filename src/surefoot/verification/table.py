"""Shows a report in the terminal."""

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from surefoot.verification.report import Component, Measure, Path, Report

NOTHING = "\N{EN DASH}"
_STYLES = {"ok": "green", "DIFFERS": "bold red", "not applicable": "dim", "not compared": "yellow"}
_TITLES: dict[Path, str] = {
    "native": "native against readable",
    "library": "native against readable, with the same envs",
    "stepwise": "checked against the protocol",
}
_CLAIMS: dict[str, str] = {
    "env dynamics": "native envs equal the readable ones",
    "policy outputs": "native rollouts equal those of the readable collector",
    "protocol": "the env keeps the protocol",
    "weights": "the learner ({learner}) equals the readable one",
}
"""What was shown if nothing differs, by a component that is only compared then."""
_PLAIN: dict[str, str] = {
    "GAE": "targets",
    "advantages": "normalized advantages",
    "minibatches": "minibatches",
    "normalizer statistics": "statistics",
    "knobs": "schedules",
}
"""What equals plain numpy, by component, if it was compared with numpy and nothing of it was left out."""


def show(report: Report, console: Console) -> None:
    """Print the table and a summary."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, title_justify="left", title_style="bold")
    table.title = Text(_title(report))
    table.add_column("component")
    table.add_column("compared")
    table.add_column("largest\ndifference", justify="right", no_wrap=True)
    table.add_column("tolerance", justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    previous = ""
    for component in report.components:
        table.add_row(*_cells(component, component.name == previous))
        previous = component.name
    console.print(table)
    console.print(Text(summary(report), style="bold green" if report.ok else "bold red"))


def summary(report: Report) -> str:
    """What differs; or what was compared with what, and what was not."""
    if not report.ok:
        return f"{report.target}: DIFFERS in {', '.join(report.differing)}"
    compared = [component for component in report.components if component.verdict == "ok"]
    names = {component.name for component in compared} - {
        component.name for component in report.components if component.verdict == "not compared"
    }
    learner = next((component.note for component in compared if component.name == "learner"), "")
    shown = [claim for name, claim in _CLAIMS.items() if name in names]
    with_numpy = {component.name for component in compared if "numpy" in component.compared}
    if plain := [claim for name, claim in _PLAIN.items() if name in names & with_numpy]:
        shown.append(f"{' and '.join(filter(None, (', '.join(plain[:-1]), plain[-1])))} equal plain numpy")
    text = f"{report.target}: ok in {len(compared)} comparisons: {'; '.join(shown).format(learner=learner)}"
    return "\n".join([text, *(f"not compared: {missing}" for missing in report.not_compared)])


def _title(report: Report) -> str:
    return f"surefoot verify {report.target}, seed {report.seed}: {_TITLES[report.path]}"


def _cells(component: Component, is_repeated: bool) -> list[Text]:
    compared = Text(component.compared)
    if component.note:
        compared.append(
            f"\n{component.note}", style=_STYLES[component.verdict] if component.verdict == "DIFFERS" else "dim"
        )
    return [
        Text("" if is_repeated else component.name),
        compared,
        Text(_number(component.difference, component.measure)),
        Text("bits" if component.measure == "bits" else _number(component.tolerance, component.measure)),
        Text("n/a" if component.verdict == "not applicable" else component.verdict, style=_STYLES[component.verdict]),
    ]


def _number(value: float | None, measure: Measure) -> str:
    if value is None:
        return NOTHING
    if measure == "count":
        return f"{value:,.0f}"
    return "0" if value == 0 else f"{value:.1e}"
