"""What a run takes of the machine, and what that leaves it; from Linux's /proc, elsewhere nothing."""

import os
import time
from pathlib import Path

from surefoot.core.memory import container_memory, machine_memory
from surefoot.telemetry import names

_PROCESS = Path("/proc/self/statm")
_SCHEDULER = Path("/proc/thread-self/schedstat")


class CpuWait:
    """How much of its time this thread is kept waiting for a CPU, because others use them all."""

    def __init__(self) -> None:
        self._last: tuple[float, float] | None = None
        self.metrics()

    def metrics(self) -> dict[str, float]:
        """The share of the time since the last call."""
        try:
            waited_s = int(_SCHEDULER.read_text().split()[1]) / 1e9
        except (OSError, ValueError, IndexError):
            return {}
        now, last = (time.monotonic(), waited_s), self._last
        self._last = now
        if last is None or now[0] <= last[0]:
            return {}
        return {names.CPU_WAIT: min(1.0, max(0.0, (now[1] - last[1]) / (now[0] - last[0])))}


def memory_metrics() -> dict[str, float]:
    """Megabytes of this process, and the share of the machine's or container's memory that is still available."""
    try:
        resident = int(_PROCESS.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return {}
    limits = [limit for limit in (machine_memory(), container_memory()) if limit is not None]
    left = min(limit.available / limit.total for limit in limits)
    return {names.MEMORY: resident / 2**20, names.MEMORY_AVAILABLE: left}
