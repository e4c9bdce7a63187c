"""Whether others used the processor while we measured."""

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from surefoot.benchmark.process_tree import PROC, cpu_seconds

BUSY_SHARE = 0.1
"""Above this share of all cores, used by others, a result says that the machine was busy."""
_TICKS = os.sysconf("SC_CLK_TCK")
_IDLE = (3, 4)
"""Places of idle and waiting for disks in the first line of /proc/stat, counted after its name."""


@dataclass(frozen=True)
class Load:
    """How busy others kept the machine; a share is of all cores, None where the system does not tell."""

    loadavg_before: float | None
    others_share: float | None
    others_share_highest: float | None

    @property
    def is_busy(self) -> bool:
        """Whether the results deserve less trust."""
        return self.others_share is not None and self.others_share > BUSY_SHARE

    def describe(self) -> str:
        """One sentence."""
        if self.others_share is None:
            return "How busy the machine was is unknown here."
        numbers = f"others used {self.others_share:.0%} of all cores during the measurements"
        if self.is_busy:
            return f"The machine was BUSY: {numbers}, so trust ratios more than absolute numbers, and both with care."
        return f"The machine was quiet: {numbers}."


class OthersClock:
    """The processor time that others use between two looks: all of the machine's less that of our trees."""

    def __init__(self, roots: Iterable[int]) -> None:
        self._roots = [*roots, os.getpid()]
        self._began, self._busy, self._own = time.perf_counter(), _busy_seconds(), self._used()

    def share(self) -> float | None:
        """Their share of all cores since this clock was made."""
        busy = _busy_seconds()
        if busy is None or self._busy is None:
            return None
        others = (busy - self._busy) - (self._used() - self._own)
        cores = os.cpu_count() or 1
        return min(1.0, max(0.0, others / ((time.perf_counter() - self._began) * cores)))

    def _used(self) -> float:
        return sum(cpu_seconds(root) for root in self._roots)


def loadavg() -> float | None:
    """The load of the last minute."""
    try:
        return round(os.getloadavg()[0], 2)
    except OSError:
        return None


def summarize_load(loadavg_before: float | None, shares: Sequence[float | None]) -> Load:
    """The mean and the highest of what the clocks of single measurements say."""
    known = [share for share in shares if share is not None]
    if not known:
        return Load(loadavg_before, None, None)
    return Load(loadavg_before, round(sum(known) / len(known), 3), round(max(known), 3))


def _busy_seconds() -> float | None:
    try:
        first = (PROC / "stat").read_text().split("\n", 1)[0]
    except OSError:
        return None
    ticks = [int(field) for field in first.split()[1:9]]
    return sum(count for place, count in enumerate(ticks) if place not in _IDLE) / _TICKS
