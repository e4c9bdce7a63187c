"""A progress bar for episodes, whose length nobody knows before they end."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from surefoot.output.terminal import Terminal

if TYPE_CHECKING:
    from surefoot.watching.playing import Moment
    from surefoot.watching.recording import Tell


@contextmanager
def watch_progress(episodes: int, env_id: str) -> "Iterator[Tell]":
    """Shows episode, step and return on a terminal; elsewhere nothing."""
    columns = (
        SpinnerColumn(),
        TextColumn(env_id, markup=False),
        BarColumn(bar_width=20),
        TextColumn("episode {task.fields[episode]}/{task.total}"),
        TextColumn("step {task.fields[step]:,}"),
        TextColumn("return {task.fields[total_reward]}"),
        TimeElapsedColumn(),
    )
    console = Terminal(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("", total=episodes, episode=1, step=0, total_reward="0")

        def tell(moment: "Moment") -> None:
            from surefoot.watching.overlay import shown_return

            progress.update(
                bar,
                completed=moment.episode + moment.is_last,
                episode=moment.episode + 1,
                step=moment.step,
                total_reward=shown_return(moment.total_reward),
            )

        yield tell
