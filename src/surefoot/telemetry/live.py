"""The live panel of a run, redrawn in place on a terminal or in the cell of a notebook."""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.jupyter import JupyterMixin
from rich.live import Live
from rich.logging import RichHandler
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from surefoot.output.terminal import Terminal
from surefoot.telemetry import names
from surefoot.telemetry.readings import RATES, TABLE, TRENDS, Pace, Reading, duration, raised_alerts, sparkline
from surefoot.telemetry.records import NO_HISTORY, History
from surefoot.telemetry.sinks import Metrics

_log = logging.getLogger("surefoot")

_REFRESH_S = 0.25
MAX_WIDTH, _WIDE, _WITH_TRENDS = 160, 70, 110
_BESIDE_TRENDS, _GAP = 76, 4
"""Characters of the table besides its trends, and between its first pairs then."""


class NotebookCell:
    """Draws in the cell that is being run, like `rich.live.Live`, which would need ipywidgets for that."""

    def __init__(self, get_renderable: Callable[[], RenderableType]) -> None:
        self._get = get_renderable
        self._handle: Any = None

    def start(self, refresh: bool = True) -> None:
        """Draw for the first time."""
        from IPython.display import display  # present wherever a notebook runs

        self._handle = display(_Shown(self._get()), display_id=True)

    def refresh(self) -> None:
        """Replace what was drawn."""
        self._handle.update(_Shown(self._get()))

    def stop(self) -> None:
        """Draw for the last time."""
        self.refresh()


class _Shown(JupyterMixin):
    """Anything that rich can print, in the form that notebooks ask for."""

    def __init__(self, renderable: RenderableType) -> None:
        self._renderable = renderable

    def __rich__(self) -> RenderableType:
        return self._renderable


def started_live(console: Console, render: Callable[[], RenderableType]) -> Live | NotebookCell:
    """A display that is redrawn in place by `refresh`, until `stop`."""
    # Without rich's refresh thread: it would compete with training for the interpreter, and threads do not mix with
    # forked workers.
    is_cell = console.is_jupyter
    live = NotebookCell(render) if is_cell else Live(console=console, auto_refresh=False, get_renderable=render)
    live.start(refresh=True)
    console.show_cursor(True)  # a killed process could not restore a hidden cursor
    return live


def warnings_above(console: Console) -> logging.Handler:
    """Print warnings of the log above a live display, until the handler is removed."""
    handler = RichHandler(console=console, show_path=False, log_time_format="%X")
    handler.setLevel(logging.WARNING)
    _log.addHandler(handler)
    return handler


class LiveConsole:
    """A panel that is redrawn in place until `close`; warnings are printed above it."""

    def __init__(
        self,
        title: str,
        total_steps: int,
        start_step: int = 0,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
        history: History = NO_HISTORY,
    ) -> None:
        self._title, self._total_steps, self._start_step, self._clock = title, total_steps, start_step, clock
        self._began = self._drawn = clock()
        self._step, self._shown = start_step, dict[str, float]()
        self._trends: dict[str, list[float]] = {reading.name: [] for reading in TRENDS}
        self._trends[names.EPISODE_REWARD] += history.returns
        self._elapsed_before_s, self._is_over = history.elapsed_s, False
        self._console = console or Terminal()
        self._live, self._handler = started_live(self._console, self._picture), warnings_above(self._console)

    def write(self, step: int, metrics: Metrics) -> None:
        """Add a record; redraw unless the panel was redrawn a moment ago."""
        kept = {name: self._shown[name] for name in (*RATES, names.EVAL_REWARD) if name in self._shown}
        smooth = {name: 0.7 * kept[name] + 0.3 * metrics[name] for name in RATES if name in kept and name in metrics}
        self._step, self._shown = step, {**kept, **metrics, **smooth}
        for name, values in self._trends.items():
            if name in metrics:
                values.append(metrics[name])
        if self._clock() - self._drawn >= _REFRESH_S:
            self._drawn = self._clock()
            self._live.refresh()

    def close(self) -> None:
        """Draw the final state, which stays on the screen, and restore the logger and the terminal."""
        _log.removeHandler(self._handler)
        self._is_over = True
        self._live.stop()

    @property
    def _width(self) -> int:
        """Two columns stay free for the ^C that a terminal echoes: wrapped, it would tear the picture."""
        return max(20, min(MAX_WIDTH, self._console.width - 2))

    @property
    def _pace(self) -> Pace:
        elapsed_s = self._clock() - self._began
        return Pace(self._step, self._total_steps, self._start_step, elapsed_s, self._elapsed_before_s)

    def _picture(self) -> RenderableType:
        width, pace = self._width, self._pace
        inside = width - 4
        title = Text(self._title, style="bold not dim")
        title.truncate(inside - 2, overflow="ellipsis")
        returns = sparkline(self._trends[names.EPISODE_REWARD], inside - 7)
        trend = Text.assemble(("return ", "dim"), (returns, "green"), no_wrap=True)
        table = _table(self._shown, self._trends, inside)
        shown: list[RenderableType] = [_progress(pace, inside), "", table, "", trend]
        alerts = raised_alerts(self._shown)
        if alerts:
            shown += ["", Text("⚠ " + " · ".join(alerts), "bold yellow")]
        border = "yellow" if alerts else "dim"
        return Panel(Group(*shown), title=title, title_align="left", width=width, border_style=border)


def _progress(pace: Pace, width: int) -> Group:
    """The progress bar, with a line of steps and times below it."""
    bar = Table.grid(expand=True)
    bar.add_column(ratio=1)
    bar.add_column(width=7, justify="right")
    filled = ProgressBar(100.0, pace.percent, complete_style="cyan", finished_style="green")
    bar.add_row(filled, f"{pace.percent:.1f}%")
    steps = f"{pace.step:,} / {pace.total_steps:,}" + " steps" * (width >= _WIDE)
    times = f"elapsed {duration(pace.total_s)} · ETA {duration(pace.eta_s)}"
    return Group(bar, Text(f"{steps} {times:>{max(0, width - len(steps) - 1)}}", no_wrap=True, overflow="ellipsis"))


def _table(metrics: Metrics, trends: Mapping[str, list[float]], width: int) -> Table:
    """Labels and values in pairs of columns; trends, or the remaining space, between the pairs."""
    table, with_trends = Table.grid(expand=True), width >= _WITH_TRENDS
    for index in range(len(TABLE[0])):
        if index:
            is_gap = with_trends and index == 1
            table.add_column(ratio=None if is_gap else 1, width=_GAP if is_gap else None)
        table.add_column(style="dim", no_wrap=True)
        table.add_column(justify="right", no_wrap=True, min_width=10)
    for row in TABLE:
        cells: list[str | Text] = []
        for reading in row:
            label = reading.label if width >= _WIDE else reading.short
            trend = _trend(reading, trends[reading.name], width) if with_trends and reading in TRENDS[1:] else ""
            cells += [label, Text(reading.text(metrics), reading.style), trend]
        table.add_row(*cells[: len(table.columns)])
    return table


def _trend(reading: Reading, values: list[float], width: int) -> Text:
    bars = sparkline([reading.factor * value for value in values], width - _BESIDE_TRENDS)
    return Text(f"  {bars}", "cyan", no_wrap=True)
