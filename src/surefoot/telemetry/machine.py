"""What a run takes of the machine, and what that leaves it; from Linux's /proc, elsewhere nothing."""

import os
import time
from pathlib import Path

from surefoot.telemetry import names

_PROCESS, _MACHINE = Path("/proc/self/statm"), Path("/proc/meminfo")
_GROUP = Path("/sys/fs/cgroup")
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
        shares = [share for share in (_machine_share(), _container_share()) if share is not None]
    except (OSError, ValueError, IndexError):
        return {}
    metrics = {names.MEMORY: resident / 2**20}
    if shares:
        metrics[names.MEMORY_AVAILABLE] = min(shares)
    return metrics


def _machine_share() -> float | None:
    lines = dict(line.split(":", 1) for line in _MACHINE.read_text().splitlines() if ":" in line)
    total, available = (int(lines[key].split()[0]) for key in ("MemTotal", "MemAvailable") if key in lines)
    return available / total


def _container_share() -> float | None:
    """What a container may take is often less than the machine has; its file cache can be given back."""
    try:
        limit = (_GROUP / "memory.max").read_text().strip()
        if not limit.isdigit():
            return None
        used = int((_GROUP / "memory.current").read_text())
        statistics = dict(line.split() for line in (_GROUP / "memory.stat").read_text().splitlines())
    except OSError:
        return None
    return 1 - (used - int(statistics.get("inactive_file", 0))) / int(limit)
