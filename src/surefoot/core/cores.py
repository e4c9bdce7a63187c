"""Number of available CPU cores."""

import os


def available_cores() -> int:
    """Number of cores that this process may run on, or all cores if the system does not report an affinity."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
