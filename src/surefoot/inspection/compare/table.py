"""A comparison in the terminal."""

from collections.abc import Iterable, Mapping

from rich.console import Console
from rich.table import Table
from rich.text import Text

from surefoot.core.aggregates import Aggregate
from surefoot.core.risk import Estimate
from surefoot.inspection.compare.comparison import Comparison

_WIDE, _MAX_WIDTH = 100, 140
COLUMNS = {"mean": "mean", "iqm": "IQM", "median": "median"}


def print_comparison(found: Comparison, console: Console | None = None) -> None:
    """Print tables of the aggregates and of the improvements, then the notes."""
    console = console or Console(highlight=False)
    console.width = min(console.width, _MAX_WIDTH)
    for task in found.tasks:
        counts = {side.name: len(side.scores[task]) for side in found.sides if task in side.scores}
        title = f"{task} · {found.measure.text}"
        console.print(aggregate_table(title, found.by_task[task], counts, console.width), "")
    if found.over_tasks:
        counts = {side.name: sum(map(len, side.scores.values())) for side in found.sides}
        tasks = f"{len(found.tasks)} task{'s' * (len(found.tasks) > 1)}"
        title = f"{tasks} on the scale '{found.normalize}' · {found.measure.text}"
        console.print(aggregate_table(title, found.over_tasks, counts, console.width), "")
    if found.improvements:
        console.print(_improvement_table(found, console.width), "")
    print_notes(["small numbers: 95% stratified bootstrap intervals", *found.notes], console)


def aggregate_table(title: str, rows: Mapping[str, Aggregate], counts: Mapping[str, int], width: int) -> Table:
    """Mean, interquartile mean and median of each side, with intervals."""
    table = _table(title)
    table.add_column("group", overflow="fold", ratio=1 if width < _WIDE else None)
    table.add_column("runs", justify="right", no_wrap=True)
    for head in COLUMNS.values():
        table.add_column(head, justify="right", no_wrap=True)
    for name, found in rows.items():
        figures = [estimate_text(getattr(found, key), counts[name], width) for key in COLUMNS]
        table.add_row(Text(name), str(counts[name]), *figures)
    return table


def _improvement_table(found: Comparison, width: int) -> Table:
    several = len(found.tasks) > 1
    table = _table("Probability that a run of the first group scores higher")
    table.add_column("groups", overflow="fold", ratio=1 if width < _WIDE else None)
    if several:
        table.add_column("task", overflow="fold")
    table.add_column("probability", justify="right", no_wrap=True)
    for one in found.improvements:
        task = [Text(one.task or "all tasks")] * several
        table.add_row(Text(f"{one.first} over {one.second}"), *task, estimate_text(one.probability, 2, width))
    return table


def estimate_text(found: Estimate, count: int, width: int) -> Text:
    """A figure with its interval, below it if the terminal is narrow; one run has no interval."""
    text = Text(number(found.value))
    if count > 1:
        low, high = number(found.low), number(found.high)
        text.append(f"  {low} to {high}" if width >= _WIDE else f"\n{low} to {high}", "dim")
    return text


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


def _table(title: str) -> Table:
    return Table(title=Text(title, "bold"), title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))
