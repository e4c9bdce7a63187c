"""The seeds of a folder in the terminal: a row per run, and the aggregates."""

from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from surefoot.inspection.compare.comparison import compare
from surefoot.inspection.compare.scores import Measure
from surefoot.inspection.compare.table import number, print_aggregates, print_notes
from surefoot.inspection.report.reported_run import ReportedRun, with_distinct_names
from surefoot.inspection.report.run_groups import SEED, settings_of
from surefoot.inspection.report.run_summary import summarize
from surefoot.inspection.run_record import read_run
from surefoot.inspection.seeds_folder import runs_in
from surefoot.output.terminal import Terminal

_NOTHING = "\N{EN DASH}"


def print_seeds(folder: Path, console: Console | None = None) -> None:
    """Print the runs of a folder, and their mean, interquartile mean and median if they were evaluated."""
    console = console or Terminal(highlight=False)
    runs, measure = with_distinct_names([read_run(path) for path in runs_in(folder)]), Measure()
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
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
