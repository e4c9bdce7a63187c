"""Console output of a run: drawn in place on a terminal and in a notebook, plain lines elsewhere."""

import logging
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Literal, TextIO

from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from surefoot.output.terminal import Terminal
from surefoot.telemetry import names
from surefoot.telemetry.live import LiveConsole
from surefoot.telemetry.readings import EVAL, LINE, RETURN, SPEED, Pace, duration, raised_alerts
from surefoot.telemetry.records import NO_HISTORY, History
from surefoot.telemetry.sinks import Metrics, Sink

ConsoleMode = Literal["auto", "live", "line", "plain", "off"]
_log = logging.getLogger("surefoot")
_WITH_TITLE, _WITH_SPEED = 90, 70
_SHORTEST_BAR = 6


class ProgressLine(LiveConsole):
    """A bar with steps, return, speed and time left; wider terminals also show the title."""

    def _picture(self) -> RenderableType:
        pace, width = self._pace, self._width
        times = f"{duration(pace.total_s)}" if self._is_over else f"ETA {duration(pace.eta_s)}"
        texts = [
            Text(f"{pace.percent:.0f}%"),
            Text(f"{pace.step:,}/{pace.total_steps:,}", "dim"),
            Text(f"return {RETURN.text(self._shown)}", RETURN.style),
            *([Text(f"{SPEED.text(self._shown)} steps/s")] if width >= _WITH_SPEED else []),
            Text(times),
        ]
        line = Table.grid(padding=(0, 2, 0, 0))
        line.width = width
        bar = ProgressBar(100.0, pace.percent, complete_style="cyan", finished_style="green")
        cells: list[RenderableType] = [bar, *texts]
        if width >= _WITH_TITLE:
            title = Text(self._title, "bold", no_wrap=True, overflow="ellipsis")
            title.truncate(width // 3, overflow="ellipsis")
            line.add_column(no_wrap=True)
            cells.insert(0, title)
        line.add_column(ratio=1, min_width=_SHORTEST_BAR)
        for _ in texts:
            line.add_column(no_wrap=True)
        line.add_row(*cells)
        alerts = raised_alerts(self._shown)
        return Group(line, Text("⚠ " + " · ".join(alerts), "bold yellow")) if alerts else line


class PlainConsole:
    """Prints one line per interval, for log files and pipes: ASCII only."""

    def __init__(
        self,
        total_steps: int,
        start_step: int = 0,
        stream: TextIO | None = None,
        min_interval_s: float = 2.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._total_steps, self._start_step, self._clock = total_steps, start_step, clock
        self._stream, self._min_interval_s = stream or sys.stdout, min_interval_s
        self._began, self._printed = clock(), -math.inf
        self._waiting: str | None = None
        self._warnings = ExitStack()
        self._warnings.enter_context(warnings_on_stderr())

    def write(self, step: int, metrics: Metrics) -> None:
        """Print a line if it is due or has an evaluation; else keep it in case it is the last one."""
        self._waiting = self._line(step, metrics)
        if self._clock() - self._printed >= self._min_interval_s or names.EVAL_REWARD in metrics:
            self._print_waiting()

    def close(self) -> None:
        """Print the last record if it is still pending, and restore the logger."""
        self._warnings.close()
        self._print_waiting()

    def _print_waiting(self) -> None:
        if self._waiting is not None:
            print(self._waiting, file=self._stream, flush=True)
            self._waiting, self._printed = None, self._clock()

    def _line(self, step: int, metrics: Metrics) -> str:
        pace = Pace(step, self._total_steps, self._start_step, self._clock() - self._began)
        total = f"{self._total_steps:,}"
        texts = [f"{step:>{len(total)},}/{total} {pace.percent:5.1f}%", f"ETA {duration(pace.eta_s, '-'):>7}"]
        texts.append(f"fps {SPEED.text(metrics, '-'):>7}")
        readings = (*LINE, EVAL) if names.EVAL_REWARD in metrics else LINE
        texts += [f"{reading.short} {reading.text(metrics, '-'):>7}" for reading in readings]
        alerts = raised_alerts(metrics)
        if alerts:
            texts.append(f"ALERT: {', '.join(alerts)}")
        return "  ".join(texts)


@contextmanager
def warnings_on_stderr() -> Iterator[None]:
    """Print warnings of the log."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    handler.setLevel(logging.WARNING)
    _log.addHandler(handler)
    try:
        yield
    finally:
        _log.removeHandler(handler)


def build_console(
    mode: ConsoleMode, title: str, total_steps: int, start_step: int, history: History = NO_HISTORY
) -> Sink | None:
    """The console for a mode; auto is live on a terminal that supports it, else plain."""
    if mode == "off":
        return None
    console = Terminal()
    if is_live(mode, console):
        return LiveConsole(title, total_steps, start_step, console, history=history)
    if mode == "line" and (_is_terminal(console) or console.is_jupyter):
        return ProgressLine(title, total_steps, start_step, console, history=history)
    return PlainConsole(total_steps, start_step)


def is_live(mode: ConsoleMode, console: Console) -> bool:
    """Whether a display is redrawn in place: if it is asked for, or if `auto` finds a terminal that supports it."""
    return mode == "live" or (mode == "auto" and _is_terminal(console))


def mode_in_python(setting: ConsoleMode, progress: bool | None) -> ConsoleMode:
    """The mode of a call from Python: by default, a line of progress where a person watches, and nothing elsewhere."""
    if progress is not None:
        return "off" if not progress else "line" if setting in ("auto", "off") else setting
    if setting != "auto":
        return setting
    console = Terminal()
    return "line" if _is_terminal(console) or console.is_jupyter else "off"


def _is_terminal(console: Console) -> bool:
    """Under FORCE_COLOR, rich treats a log file as a terminal; a terminal without Unicode cannot show the bars."""
    is_terminal = sys.stdout is not None and sys.stdout.isatty() and console.is_interactive
    return is_terminal and console.encoding.startswith("utf")
