"""Console output of a run: a live panel on a terminal, plain lines elsewhere."""

import logging
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.logging import RichHandler
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from surefoot.telemetry import names
from surefoot.telemetry.alerts import ALERTS
from surefoot.telemetry.sinks import Metrics, Sink

_log = logging.getLogger("surefoot")

_REFRESH_S = 0.25
_MAX_WIDTH, _WIDE = 100, 70
_MISSING = "\N{EN DASH}"
_LEVELS = "▁▂▃▄▅▆▇█"
_LABELS = {alert.key: alert.label for alert in ALERTS}
_RATES = (names.STEPS_PER_SECOND, names.ROLLOUT_STEPS_PER_SECOND, names.LEARN_STEPS_PER_SECOND)


@dataclass(frozen=True)
class Reading:
    """How one metric is displayed; the short label is for narrow columns."""

    name: str
    label: str
    short: str
    spec: str
    style: str = ""
    factor: float = 1.0

    def text(self, metrics: Metrics, missing: str = _MISSING) -> str:
        """The value in at most nine characters."""
        if self.name not in metrics:
            return missing
        value = self.factor * metrics[self.name]
        text = format(value, self.spec if abs(value) < 1e3 else ",.0f")
        return text if len(text) <= 9 else f"{value:.2e}"


_RETURN = Reading(names.EPISODE_REWARD, "return", "return", "z.2f", "bold green")
_LENGTH = Reading(names.EPISODE_LENGTH, "length", "length", "z.1f")
_EVAL = Reading(names.EVAL_REWARD, "last eval", "eval", "z.2f", "bold cyan")
_LEARNING_RATE = Reading(names.LEARNING_RATE, "learning rate", "lr", ".2e")
_KL = Reading(names.APPROX_KL, "KL", "KL", "z.4f")
_CLIPPED = Reading(names.CLIP_FRACTION, "clip fraction", "clip", "z.3f")
_EXPLAINED = Reading(names.EXPLAINED_VARIANCE, "explained var", "EV", "z.3f")
_ENTROPY = Reading(names.ENTROPY_LOSS, "entropy", "entropy", "z.3f", factor=-1.0)
_SPEED = Reading(names.STEPS_PER_SECOND, "steps/s", "steps/s", ".0f", "bold")
_ROLLOUT = Reading(names.ROLLOUT_STEPS_PER_SECOND, "· rollout", "rollout", ".0f")
_LEARN = Reading(names.LEARN_STEPS_PER_SECOND, "· learn", "learn", ".0f")
_TABLE = (
    (_RETURN, _KL, _SPEED),
    (_LENGTH, _CLIPPED, _ROLLOUT),
    (_EVAL, _EXPLAINED, _LEARN),
    (_LEARNING_RATE, _ENTROPY),
)
_LINE = (_RETURN, _LENGTH, _KL, _EXPLAINED, _ENTROPY)


@dataclass(frozen=True)
class Pace:
    """Progress of a run, and the time left at the speed since this process started."""

    step: int
    total_steps: int
    start_step: int
    elapsed_s: float

    @property
    def percent(self) -> float:
        """Completed steps in percent, at most 100: the last rollout may overshoot."""
        return min(100.0, 100.0 * self.step / max(1, self.total_steps))

    @property
    def eta_s(self) -> float | None:
        """Seconds left; None before the first steps of this process."""
        done, left = self.step - self.start_step, max(0, self.total_steps - self.step)
        return left * self.elapsed_s / done if done > 0 else None


def duration(seconds: float | None, missing: str = _MISSING) -> str:
    """As m:ss, h:mm:ss, or days and hours."""
    if seconds is None:
        return missing
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    if hours >= 48:
        return f"{hours // 24}d {hours % 24}h"
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def sparkline(values: Sequence[float], width: int) -> str:
    """Bars from the lowest to the highest value; more values than fit are averaged in groups."""
    if not values:
        return _MISSING
    count = min(width, len(values))
    edges = [index * len(values) // count for index in range(count + 1)]
    means = [sum(values[begin:end]) / (end - begin) for begin, end in pairwise(edges)]
    low, high = min(means), max(means)
    scale = (len(_LEVELS) - 1) / ((high - low) or 1.0)
    return "".join(_LEVELS[round((mean - low) * scale)] for mean in means)


def raised_alerts(metrics: Metrics) -> list[str]:
    """Labels of the active alerts; alerts from user hooks appear under their metric name."""
    raised = [name for name, value in metrics.items() if name.startswith(names.ALERT_PREFIX) and value > 0]
    return [_LABELS.get(name, name.removeprefix(names.ALERT_PREFIX)) for name in raised]


class LiveConsole:
    """A panel that is redrawn in place until `close`; warnings are printed above it."""

    def __init__(
        self,
        title: str,
        total_steps: int,
        start_step: int = 0,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._title, self._total_steps, self._start_step, self._clock = title, total_steps, start_step, clock
        self._began = self._drawn = clock()
        self._step, self._shown, self._returns = start_step, dict[str, float](), list[float]()
        self._console = console or Console()
        self._live, self._handler = started_live(self._console, self._panel), warnings_above(self._console)

    def write(self, step: int, metrics: Metrics) -> None:
        """Add a record; redraw unless the panel was redrawn a moment ago."""
        kept = {name: self._shown[name] for name in (*_RATES, names.EVAL_REWARD) if name in self._shown}
        smooth = {name: 0.7 * kept[name] + 0.3 * metrics[name] for name in _RATES if name in kept and name in metrics}
        self._step, self._shown = step, {**kept, **metrics, **smooth}
        if names.EPISODE_REWARD in metrics:
            self._returns.append(metrics[names.EPISODE_REWARD])
        if self._clock() - self._drawn >= _REFRESH_S:
            self._drawn = self._clock()
            self._live.refresh()

    def close(self) -> None:
        """Draw the final state, which stays on the screen, and restore the logger and the terminal."""
        _log.removeHandler(self._handler)
        self._live.stop()

    def _panel(self) -> Panel:
        # Two columns stay free for the ^C that a terminal echoes: wrapped, it would tear the panel.
        width = max(20, min(_MAX_WIDTH, self._console.width - 2))
        inside = width - 4
        pace = Pace(self._step, self._total_steps, self._start_step, self._clock() - self._began)
        title = Text(self._title, style="bold not dim")
        title.truncate(inside - 2, overflow="ellipsis")
        trend = Text.assemble(("return ", "dim"), (sparkline(self._returns, inside - 7), "green"), no_wrap=True)
        parts: list[RenderableType] = [_progress(pace, inside), "", _table(self._shown, inside), "", trend]
        alerts = raised_alerts(self._shown)
        if alerts:
            parts += ["", Text("⚠ " + " · ".join(alerts), "bold yellow")]
        border = "yellow" if alerts else "dim"
        return Panel(Group(*parts), title=title, title_align="left", width=width, border_style=border)


def _progress(pace: Pace, width: int) -> Group:
    """The progress bar, with a line of steps and times below it."""
    bar = Table.grid(expand=True)
    bar.add_column(ratio=1)
    bar.add_column(width=7, justify="right")
    filled = ProgressBar(100.0, pace.percent, complete_style="cyan", finished_style="green")
    bar.add_row(filled, f"{pace.percent:.1f}%")
    steps = f"{pace.step:,} / {pace.total_steps:,}" + " steps" * (width >= _WIDE)
    times = f"elapsed {duration(pace.elapsed_s)} · ETA {duration(pace.eta_s)}"
    return Group(bar, Text(f"{steps} {times:>{max(0, width - len(steps) - 1)}}", no_wrap=True, overflow="ellipsis"))


def _table(metrics: Metrics, width: int) -> Table:
    """Labels and values in pairs of columns, with the remaining space between the pairs."""
    table = Table.grid(expand=True)
    for index in range(len(_TABLE[0])):
        if index:
            table.add_column(ratio=1)
        table.add_column(style="dim", no_wrap=True)
        table.add_column(justify="right", no_wrap=True, min_width=10)
    for row in _TABLE:
        cells: list[str | Text] = []
        for reading in row:
            label = reading.label if width >= _WIDE else reading.short
            cells += ["", label, Text(reading.text(metrics), reading.style)]
        table.add_row(*cells[1:])
    return table


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
        parts = [f"{step:>{len(total)},}/{total} {pace.percent:5.1f}%", f"ETA {duration(pace.eta_s, '-'):>7}"]
        parts.append(f"fps {_SPEED.text(metrics, '-'):>7}")
        readings = (*_LINE, _EVAL) if names.EVAL_REWARD in metrics else _LINE
        parts += [f"{reading.short} {reading.text(metrics, '-'):>7}" for reading in readings]
        alerts = raised_alerts(metrics)
        if alerts:
            parts.append(f"ALERT: {', '.join(alerts)}")
        return "  ".join(parts)


def started_live(console: Console, render: Callable[[], RenderableType]) -> Live:
    """A display that is redrawn in place by `refresh`, until `stop`."""
    # Without rich's refresh thread: it would compete with training for the interpreter, and threads do not mix with
    # forked workers.
    live = Live(console=console, auto_refresh=False, get_renderable=render)
    live.start(refresh=True)
    console.show_cursor(True)  # a killed process could not restore a hidden cursor
    return live


def warnings_above(console: Console) -> logging.Handler:
    """Print warnings of the log above a live display, until the handler is removed."""
    handler = RichHandler(console=console, show_path=False, log_time_format="%X")
    handler.setLevel(logging.WARNING)
    _log.addHandler(handler)
    return handler


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
    mode: Literal["auto", "live", "plain", "off"], title: str, total_steps: int, start_step: int
) -> Sink | None:
    """The console for a mode; auto is live on a terminal that supports it, else plain."""
    if mode == "off":
        return None
    console = Console()
    if is_live(mode, console):
        return LiveConsole(title, total_steps, start_step, console)
    return PlainConsole(total_steps, start_step)


def is_live(mode: Literal["auto", "live", "plain", "off"], console: Console) -> bool:
    """Whether a display is redrawn in place: if it is asked for, or if `auto` finds a terminal that supports it."""
    # Under FORCE_COLOR, rich treats a log file as a terminal; a terminal without Unicode cannot show the bars.
    is_terminal = sys.stdout is not None and sys.stdout.isatty() and console.is_interactive
    return mode == "live" or (mode == "auto" and is_terminal and console.encoding.startswith("utf"))
