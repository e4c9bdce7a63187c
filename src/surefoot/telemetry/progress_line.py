"""One line of progress, redrawn in place: what a script or a notebook shows while it learns."""

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from surefoot.telemetry.live import LiveConsole
from surefoot.telemetry.readings import RETURN, SPEED, duration, raised_alerts

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
