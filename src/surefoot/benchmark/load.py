"""Whether others used the processor while we measured."""

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import psutil

from surefoot.benchmark.process_tree import cpu_seconds

BUSY_SHARE = 0.1
"""Above this share of all cores, used by others, a result says that the machine was busy."""
_NOT_BUSY = ("idle", "iowait", "guest", "guest_nice")
"""Times of a processor that are idle, or that are counted under another name too (guests of a host)."""


@dataclass(frozen=True)
class Load:
    """How busy others kept the machine; a share is of all cores, None if nothing was measured."""

    loadavg_before: float
    others_share: float | None
    others_share_highest: float | None

    @property
    def is_busy(self) -> bool:
        """Whether the results deserve less trust."""
        return self.others_share is not None and self.others_share > BUSY_SHARE

    def describe(self) -> str:
        """One sentence."""
        if self.others_share is None:
            return "How busy the machine was is unknown: no measurement succeeded."
        numbers = f"others used {self.others_share:.0%} of all cores during the measurements"
        if self.is_busy:
            return f"The machine was BUSY: {numbers}, so trust ratios more than absolute numbers, and both with care."
        return f"The machine was quiet: {numbers}."


class OthersClock:
    """The processor time that others use between two looks: all of the machine's less that of our trees."""

    def __init__(self, roots: Iterable[int]) -> None:
        self._roots = [*roots, os.getpid()]
        self._began, self._busy, self._own = time.perf_counter(), _busy_seconds(), self._used()

    def share(self) -> float:
        """Their share of all cores since this clock was made."""
        others = (_busy_seconds() - self._busy) - (self._used() - self._own)
        cores = os.cpu_count() or 1
        return min(1.0, max(0.0, others / ((time.perf_counter() - self._began) * cores)))

    def _used(self) -> float:
        return sum(cpu_seconds(root) for root in self._roots)


def loadavg() -> float:
    """The load of the last minute."""
    return round(psutil.getloadavg()[0], 2)


def summarize_load(loadavg_before: float, shares: Sequence[float]) -> Load:
    """The mean and the highest of what the clocks of single measurements say."""
    if not shares:
        return Load(loadavg_before, None, None)
    return Load(loadavg_before, round(sum(shares) / len(shares), 3), round(max(shares), 3))


def _busy_seconds() -> float:
    """Time that the cores have been busy since the machine was started."""
    times: dict[str, float] = psutil.cpu_times()._asdict()
    return sum(seconds for name, seconds in times.items() if name not in _NOT_BUSY)
