"""How many cores there are for us."""

import os


def available_cores() -> int:
    """Those that this process may run on, where the system tells, else all."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
