"""Number of available CPU cores."""

import os


def available_cores() -> int:
    """Number of cores that this process may run on, divided among the processes that torchrun started here."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(cores // int(os.environ.get("LOCAL_WORLD_SIZE", "1")), 1)
