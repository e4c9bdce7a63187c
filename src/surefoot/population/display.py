"""What a population shows while it trains: a live table on a terminal, plain lines elsewhere."""

import time
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from surefoot.population.coordinator import Outcome, Watcher
from surefoot.population.decisions import Choice
from surefoot.population.log import Entry
from surefoot.population.settings import Plan
from surefoot.telemetry.console import is_live
from surefoot.telemetry.live import started_live

_REFRESH_S = 0.25


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
        self._console = console or Console()
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
        table = Table(title=f"{self._title} · round {self._number}", title_justify="left", expand=False)
        heads = ("member", "from", "", "steps", "return", "score")
        for head in (*heads, *(name.rpartition(".")[2] for name in self._plan.names)):
            table.add_column(head, justify="right", no_wrap=True)
        for member, row in enumerate(self._rows):
            parent = row.get("parent", member)
            numbers = [f"{row.get('step', 0):,}", shown(row.get("reward")), shown(row.get("score"))]
            values = [shown(row.get("values", {}).get(name)) for name in self._plan.names]
            origin = "" if parent == member else f"{parent:02d}"
            table.add_row(f"{member:02d}", origin, row.get("what", ""), *numbers, *values)
        return table


def build_display(plan: Plan, title: str) -> PlainDisplay:
    """The display for `log.console`; auto is live on a terminal that supports it."""
    mode, console = plan.config.log.console, Console()
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
