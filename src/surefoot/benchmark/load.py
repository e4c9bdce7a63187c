"""CPU usage of other processes during the measurements."""

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import psutil

from surefoot.benchmark.process_tree import cpu_seconds

BUSY_SHARE = 0.1
"""If other processes use more than this fraction of all cores, the result says that the machine was busy."""
_NOT_BUSY = ("idle", "iowait", "guest", "guest_nice")
"""CPU times that are idle, or also counted under another name (guests)."""


@dataclass(frozen=True)
class Load:
    """CPU usage of other processes, as a fraction of all cores; None if nothing was measured."""

    loadavg_before: float
    others_share: float | None
    others_share_highest: float | None

    @property
    def is_busy(self) -> bool:
        """Whether other processes may have affected the results."""
        return self.others_share is not None and self.others_share > BUSY_SHARE

    def describe(self) -> str:
        """A summary in one sentence."""
        if self.others_share is None:
            return "The load of the machine is unknown: no measurement succeeded."
        numbers = f"other processes used {self.others_share:.0%} of all cores during the measurements"
        if self.is_busy:
            return f"The machine was BUSY: {numbers}, so results are uncertain, absolute numbers more than ratios."
        return f"The machine was quiet: {numbers}."


class OthersClock:
    """CPU time of other processes between two samples: the total minus that of the measured process trees."""

    def __init__(self, roots: Iterable[int]) -> None:
        self._roots = [*roots, os.getpid()]
        self._began, self._busy, self._own = time.perf_counter(), _busy_seconds(), self._used()

    def share(self) -> float:
        """Their fraction of all cores since this clock was created."""
        others = (_busy_seconds() - self._busy) - (self._used() - self._own)
        cores = os.cpu_count() or 1
        return min(1.0, max(0.0, others / ((time.perf_counter() - self._began) * cores)))

    def _used(self) -> float:
        return sum(cpu_seconds(root) for root in self._roots)


def loadavg() -> float:
    """The load average of the last minute."""
    return round(psutil.getloadavg()[0], 2)


def summarize_load(loadavg_before: float, shares: Sequence[float]) -> Load:
    """Mean and maximum over the single measurements."""
    if not shares:
        return Load(loadavg_before, None, None)
    return Load(loadavg_before, round(sum(shares) / len(shares), 3), round(max(shares), 3))


def _busy_seconds() -> float:
    """Total busy time of all cores since boot."""
    times: dict[str, float] = psutil.cpu_times()._asdict()
    return sum(seconds for name, seconds in times.items() if name not in _NOT_BUSY)
