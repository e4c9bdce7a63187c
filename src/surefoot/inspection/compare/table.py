"""A comparison, or the seeds of a folder, in the terminal."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from surefoot.inspection.compare.comparison import Comparison, compare
from surefoot.inspection.compare.scores import Measure
from surefoot.inspection.report.reported_run import ReportedRun, with_distinct_names
from surefoot.inspection.report.run_groups import SEED, settings_of
from surefoot.inspection.report.run_summary import summarize
from surefoot.inspection.run_record import read_run
from surefoot.inspection.seeds_folder import runs_in
from surefoot.output.terminal import Terminal
from surefoot.statistics.aggregates import Aggregate
from surefoot.statistics.risk import Estimate

_NARROW, _WIDE, _MAX_WIDTH = 75, 100, 140
COLUMNS = {"mean": "mean", "iqm": "IQM", "median": "median"}
_NOTHING = "\N{EN DASH}"


def print_comparison(found: Comparison, console: Console | None = None) -> None:
    """Print tables of the aggregates and of the improvements, then the notes."""
    console = console or Terminal(highlight=False)
    console.width = min(console.width, _MAX_WIDTH)
    for task in found.tasks:
        counts = {side.name: len(side.scores[task]) for side in found.sides if task in side.scores}
        print_aggregates(f"{task} · {found.measure.text}", found.by_task[task], counts, console)
    if found.over_tasks:
        counts = {side.name: sum(map(len, side.scores.values())) for side in found.sides}
        tasks = f"{len(found.tasks)} task{'s' * (len(found.tasks) > 1)}"
        title = f"{tasks} on the scale '{found.normalize}' · {found.measure.text}"
        print_aggregates(title, found.over_tasks, counts, console)
    if found.improvements:
        _print_improvements(found, console)
    print_notes(["ranges are 95% stratified bootstrap intervals", *found.notes], console)


def print_aggregates(title: str, rows: Mapping[str, Aggregate], counts: Mapping[str, int], console: Console) -> None:
    """Mean, interquartile mean and median of each side with intervals: beside each other if there is room."""
    width = console.width
    table = _table()
    table.add_column("group", overflow="fold")
    table.add_column("runs", justify="right", no_wrap=True)
    for head in COLUMNS.values() if width >= _NARROW else ("", ""):
        table.add_column(head, justify="right", no_wrap=True)
    for name, found in rows.items():
        figures = {head: getattr(found, key) for key, head in COLUMNS.items()}
        if width >= _NARROW:
            cells = [estimate_text(figure, counts[name], width) for figure in figures.values()]
            table.add_row(Text(name), str(counts[name]), *cells)
            continue
        for place, (head, figure) in enumerate(figures.items()):
            first = ("", "") if place else (Text(name), str(counts[name]))
            table.add_row(*first, Text(head, "dim"), estimate_text(figure, counts[name], _WIDE))
    console.print(Text(title, "bold"), table, "")


def _print_improvements(found: Comparison, console: Console) -> None:
    several = len(found.tasks) > 1
    table = _table()
    table.add_column("groups", overflow="fold")
    if several:
        table.add_column("task", overflow="fold")
    table.add_column("probability", justify="right", no_wrap=True)
    for one in found.improvements:
        task = [Text(one.task or "all tasks")] * several
        table.add_row(Text(f"{one.first} over {one.second}"), *task, estimate_text(one.probability, 2, _WIDE))
    console.print(Text("Probability that a run of the first group scores higher", "bold"), table, "")


def estimate_text(found: Estimate, count: int, width: int) -> Text:
    """A figure with its interval, below it if the terminal is narrow; one run has no interval."""
    spread = f"{number(found.low)} to {number(found.high)}" if count > 1 else "one run"
    return Text(number(found.value)).append(("  " if width >= _WIDE else "\n") + spread, "dim")


def number(value: float) -> str:
    """A number with about four digits."""
    size = abs(value)
    return f"{value:,.0f}" if size >= 10_000 else f"{value:,.1f}" if size >= 100 else f"{value:z.2f}"


def print_notes(notes: Iterable[str], console: Console) -> None:
    """Notes, wrapped to the width."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    for note in notes:
        grid.add_row(Text("note:", "dim"), Text(note, "dim"))
    console.print(grid)


def _table() -> Table:
    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))


def print_seeds(folder: Path, console: Console | None = None) -> None:
    """Print the runs of a folder, and their mean, interquartile mean and median if they were evaluated."""
    console = console or Terminal(highlight=False)
    runs, measure = with_distinct_names([read_run(path) for path in runs_in(folder)]), Measure()
    table = _table()
    for head in ("seed", "status", "steps", "return", "evaluation"):
        table.add_column(head, justify="left" if head == "status" else "right")
    for run in runs:
        table.add_row(*_cells(run, measure))
    console.print("", table, "")
    evaluated = [run for run in runs if run.evaluated]
    if not evaluated:
        print_notes(
            ["no evaluation was recorded (train.eval_episodes is 0), so there is nothing to aggregate"], console
        )
        return
    found = compare(evaluated, measure, names=[folder.resolve().name] * len(evaluated))
    for task, rows in found.by_task.items():
        counts = {side.name: len(side.scores[task]) for side in found.sides}
        print_aggregates(f"{task} · {measure.text}", rows, counts, console)
    print_notes(
        ["return: mean of the last 100 training episodes; ranges: 95% bootstrap intervals", *found.notes], console
    )


def _cells(run: ReportedRun, measure: Measure) -> list[Text]:
    found, score = summarize(run), measure.of(run)
    status = {"finished": "green", "failed": "bold red", "running": "cyan"}.get(found.status, "yellow")
    numbers = [_NOTHING if value is None else number(value) for value in (found.final_return, score)]
    seed = settings_of(run)[SEED]
    return [Text(seed), Text(found.status, status), Text(f"{found.steps:,}"), *map(Text, numbers)]
