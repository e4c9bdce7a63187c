"""Repeats of one measurement, and ratios between neighbors."""

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

_TO = "\N{EN DASH}"


@dataclass(frozen=True)
class Spread:
    """The median of repeats with their range: a number without its noise is no result."""

    median: float
    low: float
    high: float

    def with_range(self, form: str = ",.0f") -> str:
        """`median (low to high)`, or the number alone if there was but one."""
        if self.low == self.high:
            return format(self.median, form)
        return f"{self.median:{form}} ({self.low:{form}}{_TO}{self.high:{form}})"

    def with_noise(self, form: str = ",.0f") -> str:
        """`median ±3%`, the largest distance of a repeat from the median; or the number alone if there was but one."""
        if self.low == self.high:
            return format(self.median, form)
        distance = max(self.high - self.median, self.median - self.low) / self.median
        return f"{self.median:{form}} ±{distance:.0%}"

    def to_json(self) -> dict[str, Any]:
        """Three numbers by name."""
        return asdict(self)


def spread(values: Sequence[float]) -> Spread:
    """Of at least one value."""
    return Spread(statistics.median(values), min(values), max(values))


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> Spread:
    """Each repeat of ours over theirs of the same round, measured next to it: slow drift of the machine cancels."""
    return spread([mine / other for mine, other in zip(ours, theirs, strict=True)])
