"""Repeats of a measurement, and ratios per round."""

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

_TO = "\N{EN DASH}"


@dataclass(frozen=True)
class Spread:
    """The median of repeats with their range."""

    median: float
    low: float
    high: float

    def with_range(self, form: str = ",.0f") -> str:
        """`median (low to high)`, or just the number if there is only one repeat."""
        if self.low == self.high:
            return format(self.median, form)
        return f"{self.median:{form}} ({self.low:{form}}{_TO}{self.high:{form}})"

    def with_noise(self, form: str = ",.0f") -> str:
        """`median ±3%`, the largest deviation of a repeat from the median, or just the number for one repeat."""
        if self.low == self.high:
            return format(self.median, form)
        distance = max(self.high - self.median, self.median - self.low) / self.median
        return f"{self.median:{form}} ±{distance:.0%}"

    def to_json(self) -> dict[str, Any]:
        """Median, low and high by name."""
        return asdict(self)


def spread(values: Sequence[float]) -> Spread:
    """The spread of at least one value."""
    return Spread(statistics.median(values), min(values), max(values))


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> Spread:
    """Ratios of repeats in the same round, measured close in time, so that slow drift of the machine cancels."""
    return spread([mine / other for mine, other in zip(ours, theirs, strict=True)])
