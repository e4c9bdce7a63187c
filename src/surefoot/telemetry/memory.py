"""How much memory this process takes, and how much the machine has left; from Linux's /proc, elsewhere nothing."""

import os
from pathlib import Path

from surefoot.telemetry import names

_PROCESS, _MACHINE = Path("/proc/self/statm"), Path("/proc/meminfo")
_GROUP = Path("/sys/fs/cgroup")


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
