"""What a population shows while it trains: a live table on a terminal, plain lines elsewhere."""

import time
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from surefoot.output.terminal import Terminal
from surefoot.population.coordinator import Watcher
from surefoot.population.decisions import Choice
from surefoot.population.log import Entry, Outcome
from surefoot.population.settings import Plan
from surefoot.telemetry.console import is_live
from surefoot.telemetry.live import MAX_WIDTH, started_live

_REFRESH_S = 0.25
_GAP = 2


class PlainDisplay:
    """One line per event; progress is not shown."""

    def __init__(self, plan: Plan) -> None:
        self._plan, self._number = plan, 0

    def begin_round(self, number: int, choices: Sequence[Choice]) -> None:
        self._number = number

    def progress(self, member: int, said: dict[str, Any]) -> None:
        """Log files get no lines about it."""

    def died(self, member: int, why: str) -> None:
        self._print(f"round {self._number}  member {member:02d}  restarted: {why}")

    def finished(self, member: int, outcome: Outcome) -> None:
        text = f"failed: {outcome.error}" if outcome.error else f"score {shown_score(outcome.score, outcome.interval)}"
        self._print(f"round {self._number}  member {member:02d}  {text}")

    def decided(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            if entry.parent != entry.member:
                values = ", ".join(f"{name} {shown(value)}" for name, value in entry.next_values.items())
                self._print(f"round {entry.round}  member {entry.member:02d} <- {entry.parent:02d}  {values}")

    def close(self) -> None:
        """Nothing to restore."""

    def _print(self, line: str) -> None:
        print(line, flush=True)


class LiveDisplay(PlainDisplay):
    """A table of all members that is redrawn in place; what happens between rounds is printed above it."""

    def __init__(self, plan: Plan, title: str, console: Console | None = None) -> None:
        super().__init__(plan)
        self._title, self._drawn = title, 0.0
        self._rows = [dict[str, Any]() for _ in range(plan.population.members)]
        self._console = console or Terminal()
        self._live = started_live(self._console, self._table)

    def begin_round(self, number: int, choices: Sequence[Choice]) -> None:
        super().begin_round(number, choices)
        for row, choice in zip(self._rows, choices, strict=True):
            row |= {"values": choice.values, "parent": choice.parent, "what": "waits"}
        self._draw(is_due=True)

    def progress(self, member: int, said: dict[str, Any]) -> None:
        what = {"what": "is evaluated"} if said.get("is_evaluated") else {"what": "trains", **said}
        self._rows[member] |= what
        self._draw()

    def died(self, member: int, why: str) -> None:
        self._rows[member]["what"] = "restarted"
        super().died(member, why)

    def finished(self, member: int, outcome: Outcome) -> None:
        last = {"score": outcome.score, "interval": outcome.interval, "step": outcome.step}
        self._rows[member] |= {"what": "failed"} if outcome.error else {"what": "done", **last}
        self._draw(is_due=True)

    def close(self) -> None:
        """Draw the final state, which stays on the screen."""
        self._live.stop()

    def _print(self, line: str) -> None:
        self._console.print(line, highlight=False, markup=False)

    def _draw(self, is_due: bool = False) -> None:
        if is_due or time.monotonic() - self._drawn >= _REFRESH_S:
            self._drawn = time.monotonic()
            self._live.refresh()

    def _table(self) -> Table:
        """As many of the settings as fit; two columns stay free for the ^C that a terminal echoes."""
        columns = [*self._columns(), *self._settings()]
        widths = [max(len(head), *map(len, cells)) + _GAP for head, cells in columns]
        room = min(MAX_WIDTH, self._console.width - 2) + _GAP
        fitting = [column for column, width in zip(columns, accumulate(widths), strict=True) if width <= room]
        shown_columns = columns[: max(len(fitting), len(columns) - len(self._plan.names))]
        title = Text(f"{self._title} · round {self._number}", "bold", overflow="ellipsis")
        table = Table(box=None, pad_edge=False, title=title, title_justify="left")
        for head, _ in shown_columns:
            table.add_column(head, justify="right", no_wrap=True)
        for cells in zip(*(cells for _, cells in shown_columns), strict=True):
            table.add_row(*cells)
        hidden = [head for head, _ in columns[len(shown_columns) :]]
        table.caption = Text(f"not shown for lack of room: {', '.join(hidden)}", "dim") if hidden else None
        table.caption_justify = "left"
        return table

    def _columns(self) -> list[tuple[str, list[str]]]:
        """What every member has: heads and cells."""
        parents = [row.get("parent", member) for member, row in enumerate(self._rows)]
        return [
            ("member", [f"{member:02d}" for member in range(len(self._rows))]),
            ("from", ["" if parent == member else f"{parent:02d}" for member, parent in enumerate(parents)]),
            ("", [row.get("what", "") for row in self._rows]),
            ("steps", [f"{row.get('step', 0):,}" for row in self._rows]),
            ("return", [shown(row.get("reward")) for row in self._rows]),
            ("score", [shown(row.get("score")) for row in self._rows]),
        ]

    def _settings(self) -> list[tuple[str, list[str]]]:
        """The values that the population changes."""
        values = [row.get("values", {}) for row in self._rows]
        return [(name.rpartition(".")[2], [shown(one.get(name)) for one in values]) for name in self._plan.names]


def build_display(plan: Plan, title: str) -> PlainDisplay:
    """The display for `log.console`; auto is live on a terminal that supports it."""
    mode, console = plan.config.log.console, Terminal()
    if is_live(mode, console):
        return LiveDisplay(plan, title, console)
    return SilentDisplay(plan) if mode == "off" else PlainDisplay(plan)


class SilentDisplay(PlainDisplay):
    """Shows nothing."""

    def _print(self, line: str) -> None:
        pass


def shown(value: Any) -> str:
    """A value in few characters."""
    return "-" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def shown_score(score: float | None, interval: Sequence[float] | None) -> str:
    """A score with its interval."""
    return shown(score) + (f" ({shown(interval[0])} to {shown(interval[1])})" if interval else "")


_: type[Watcher] = PlainDisplay
