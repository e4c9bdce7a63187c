"""What the training of several seeds shows: one live line per seed on a terminal, plain lines elsewhere."""

import logging
import time
from contextlib import ExitStack
from typing import Any

from rich.console import Console
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from surefoot.output.terminal import Terminal
from surefoot.seeds.coordinator import Watcher
from surefoot.seeds.plan import SeedsPlan
from surefoot.telemetry.console import is_live, warnings_on_stderr
from surefoot.telemetry.live import MAX_WIDTH, started_live, warnings_above
from surefoot.telemetry.readings import Pace, duration, sparkline

_REFRESH_S, _PRINT_S = 0.25, 10.0
_WIDE, _WIDER, _WITH_TRENDS = 70, 90, 110
_BESIDE_TRENDS = 84
"""Characters of a line besides the trend and the shortest bar."""
_log = logging.getLogger("surefoot")


class PlainDisplay:
    """A line per event, and one per seed every few seconds."""

    def __init__(self, plan: SeedsPlan) -> None:
        self._total = plan.config.train.steps
        self._printed: dict[int, float] = {}
        self._warnings = ExitStack()
        self._warnings.enter_context(warnings_on_stderr())

    def progress(self, seed: int, said: dict[str, Any]) -> None:
        if time.monotonic() - self._printed.get(seed, -_PRINT_S) >= _PRINT_S and "rate" in said:
            self._printed[seed] = time.monotonic()
            words = [f"{said['step']:,}/{self._total:,}", f"return {number(said['reward'])}"]
            words += [f"eval {number(said['score'])}"] * (said.get("score") is not None)
            words += [f"ALERT: {', '.join(said['alerts'])}"] * bool(said.get("alerts"))
            self._print(seed, "  ".join(words))

    def died(self, seed: int, why: str) -> None:
        self._print(seed, f"restarted: {why}")

    def finished(self, seed: int, result: dict[str, Any]) -> None:
        self._print(seed, f"finished at step {result['step']:,}{_why(result)}")

    def failed(self, seed: int, error: str) -> None:
        self._print(seed, f"failed: {error}")

    def close(self) -> None:
        """Stop printing warnings."""
        self._warnings.close()

    def _print(self, seed: int, text: str) -> None:
        print(f"seed {seed:<4d} {text}", flush=True)


class SilentDisplay(PlainDisplay):
    """Shows nothing."""

    def _print(self, seed: int, text: str) -> None:
        pass


class LiveDisplay(PlainDisplay):
    """One line per seed, redrawn in place; restarts and errors are printed above."""

    def __init__(self, plan: SeedsPlan, title: str, console: Console | None = None) -> None:
        super().__init__(plan)
        self._warnings.close()
        self._title, self._drawn, self._began = title, 0.0, time.monotonic()
        self._rows: dict[int, dict[str, Any]] = {seed: {"state": "waiting"} for seed in plan.seeds}
        self._console = console or Terminal()
        self._live, self._handler = started_live(self._console, self._table), warnings_above(self._console)

    def progress(self, seed: int, said: dict[str, Any]) -> None:
        row = self._rows[seed]
        row.setdefault("start", (said["step"], time.monotonic()))
        row |= {"state": "", **said}
        if said.get("reward") is not None:
            row.setdefault("rewards", []).append(said["reward"])
        self._draw()

    def died(self, seed: int, why: str) -> None:
        self._rows[seed] |= {"state": "restarted"}
        super().died(seed, why)

    def finished(self, seed: int, result: dict[str, Any]) -> None:
        self._rows[seed] |= {"state": "finished" if not result["reason"] else "ended early", "step": result["step"]}
        self._draw(is_due=True)

    def failed(self, seed: int, error: str) -> None:
        self._rows[seed] |= {"state": "failed"}
        super().failed(seed, error)

    def close(self) -> None:
        """Draw the final state, which stays on the screen, and restore the logger."""
        _log.removeHandler(self._handler)
        self._live.stop()

    def _print(self, seed: int, text: str) -> None:
        self._console.print(f"seed {seed}: {text}", highlight=False, markup=False)

    def _draw(self, is_due: bool = False) -> None:
        if is_due or time.monotonic() - self._drawn >= _REFRESH_S:
            self._drawn = time.monotonic()
            self._live.refresh()

    def _table(self) -> Table:
        """Columns by the width: two stay free for the ^C that a terminal echoes."""
        width = max(20, min(MAX_WIDTH, self._console.width - 2))
        table = Table(box=None, pad_edge=False, width=width, title=Text(self._title, "bold", overflow="ellipsis"))
        table.title_justify = "left"
        table.add_column("seed", justify="right", no_wrap=True)
        table.add_column("", ratio=1, min_width=4)
        for head, least in (("done", 0), ("return", 0), ("eval", 0), ("steps/s", _WIDE), ("left", _WIDER)):
            if width >= least:
                table.add_column(head, justify="right", no_wrap=True, min_width=7 if head != "done" else 4)
        if width >= _WITH_TRENDS:
            table.add_column("", no_wrap=True, width=width - _BESIDE_TRENDS)
        table.add_column("", no_wrap=True, overflow="ellipsis", width=9 if width < _WIDE else 18)
        for seed, row in self._rows.items():
            table.add_row(*self._cells(seed, row, width))
        return table

    def _cells(self, seed: int, row: dict[str, Any], width: int) -> list[Any]:
        step, now = row.get("step", 0), time.monotonic()
        begun, since = row.get("start", (0, now))
        pace = Pace(step, self._total, begun, now - since)
        is_over = row["state"] in ("finished", "ended early")
        percent = 100.0 if is_over else pace.percent
        bar = ProgressBar(100.0, percent, complete_style="red" if row["state"] == "failed" else "cyan")
        cells = [str(seed), bar, f"{percent:.0f}%", number(row.get("reward")), number(row.get("score"))]
        cells += [number(row.get("rate"))] * (width >= _WIDE)
        cells += [duration(None if row["state"] else pace.eta_s)] * (width >= _WIDER)
        if width >= _WITH_TRENDS:
            cells.append(Text(sparkline(row.get("rewards", []), width - _BESIDE_TRENDS), "green"))
        return [*cells, _state(row)]


def _state(row: dict[str, Any]) -> Text:
    alerts = row.get("alerts") or []
    if row["state"] in ("failed", "restarted"):
        return Text(row["state"], "bold red")
    if alerts:
        return Text(f"⚠ {', '.join(alerts)}", "yellow")
    return Text(row["state"], "green" if row["state"] == "finished" else "dim")


def _why(result: dict[str, Any]) -> str:
    return f": {result['reason']}" if result["reason"] else ""


def number(value: float | None) -> str:
    """A number in few characters."""
    if value is None:
        return "\N{EN DASH}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def build_display(plan: SeedsPlan, title: str) -> PlainDisplay:
    """The display for `log.console`; auto is live on a terminal that supports it."""
    console, mode = Terminal(), plan.config.log.console
    if is_live(mode, console):
        return LiveDisplay(plan, title, console)
    return SilentDisplay(plan) if mode == "off" else PlainDisplay(plan)


_: type[Watcher] = PlainDisplay
