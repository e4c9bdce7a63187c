"""RAM of the machine and of the container, and how much of it is available to this process."""

import resource
import sys
from pathlib import Path
from typing import NamedTuple

import psutil

CONTROL_GROUP = Path("/sys/fs/cgroup")


class Ram(NamedTuple):
    """In bytes."""

    total: int
    available: int


def machine_ram() -> Ram:
    """RAM of the whole machine."""
    found = psutil.virtual_memory()
    return Ram(found.total, found.available)


def container_ram() -> Ram | None:
    """RAM limit of the container, often below the machine's RAM; its file cache counts as available."""
    try:
        limit, used = (int((CONTROL_GROUP / name).read_text()) for name in ("memory.max", "memory.current"))
        statistics = dict(line.split() for line in (CONTROL_GROUP / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):  # no control group, or "max": no limit
        return None
    return Ram(limit, max(0, limit - used + int(statistics.get("inactive_file", 0))))


def ram_limits() -> list[Ram]:
    """Limits of the machine and, if there is one, of the container."""
    return [limit for limit in (machine_ram(), container_ram()) if limit is not None]


def free_ram() -> int:
    """Bytes that this process can still allocate within the limits of the machine, the container and the process."""
    return min(*(limit.available for limit in ram_limits()), free_addresses())


def free_addresses() -> int:
    """Bytes of address space that this process can still reserve; a very large number if there is no limit."""
    allowed = resource.getrlimit(resource.RLIMIT_AS)[0]
    if allowed == resource.RLIM_INFINITY:
        return sys.maxsize
    return max(0, allowed - psutil.Process().memory_info().vms)


def readable(count: int) -> str:
    """A number of bytes with its unit."""
    value, unit = float(count), "B"
    for larger in ("KB", "MB", "GB", "TB"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{value:.3g} {unit}"
