"""How much memory the machine, and the container we may be in, have and leave; from Linux, elsewhere what is known."""

import os
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
