"""What attaches to the trainer."""

from typing import Protocol

from surefoot.core.records import IterationReport


class Hook(Protocol):
    """Called after every iteration, in order. A hook may add to `report.metrics` for those after it."""

    def after_iteration(self, report: IterationReport) -> None:
        """React to one iteration."""


class Every:
    """True once each time the step counter has passed another multiple of an interval; never for interval 0."""

    def __init__(self, interval: int, start: int = 0) -> None:
        self._interval, self._last = interval, start

    def is_due(self, step: int) -> bool:
        """Whether a multiple was passed since the last time this was true."""
        if self._interval == 0 or step // self._interval == self._last // self._interval:
            return False
        self._last = step
        return True
