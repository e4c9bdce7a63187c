"""A comparison in the terminal."""

from collections.abc import Iterable, Mapping

from rich.console import Console
from rich.table import Table
from rich.text import Text

from surefoot.inspection.compare.comparison import Comparison
from surefoot.output.terminal import Terminal
from surefoot.statistics.aggregates import Aggregate
from surefoot.statistics.risk import Estimate

_NARROW, _WIDE, _MAX_WIDTH = 75, 100, 140
COLUMNS = {"mean": "mean", "iqm": "IQM", "median": "median"}


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
