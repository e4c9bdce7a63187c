"""How much memory the machine, and the container we may be in, have and leave; from Linux, elsewhere what is known."""

import os
import resource
import sys
from pathlib import Path
from typing import NamedTuple

MEMINFO = Path("/proc/meminfo")
CONTROL_GROUP = Path("/sys/fs/cgroup")


class Memory(NamedTuple):
    """In bytes."""

    total: int
    available: int


def machine_memory() -> Memory:
    """The machine's; where the system does not tell what is available, all of it."""
    try:
        lines = dict(line.split(":", 1) for line in MEMINFO.read_text().splitlines() if ":" in line)
        total, available = (1024 * int(lines[key].split()[0]) for key in ("MemTotal", "MemAvailable"))
    except (OSError, KeyError, ValueError):
        total = available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Memory(total, available)


def container_memory() -> Memory | None:
    """What a container may take is often less than the machine has; its file cache can be given back."""
    try:
        limit, used = (int((CONTROL_GROUP / name).read_text()) for name in ("memory.max", "memory.current"))
        statistics = dict(line.split() for line in (CONTROL_GROUP / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):  # no control group, or "max": no limit
        return None
    return Memory(limit, max(0, limit - used + int(statistics.get("inactive_file", 0))))


def free_memory() -> int:
    """Bytes that this process may still take: of the machine's, its container's and its own limit."""
    limits = [limit.available for limit in (machine_memory(), container_memory()) if limit is not None]
    return min(*limits, free_addresses())


def free_addresses() -> int:
    """Bytes that this process may still ask for, whether it uses them or not; no limit is a very large one."""
    allowed = resource.getrlimit(resource.RLIMIT_AS)[0]
    if allowed == resource.RLIM_INFINITY:
        return sys.maxsize
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    return max(0, allowed - used)


def readable(count: int) -> str:
    """Bytes for people."""
    value, unit = float(count), "B"
    for larger in ("KB", "MB", "GB", "TB"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{value:.3g} {unit}"
