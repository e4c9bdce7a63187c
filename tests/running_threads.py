"""Threads of this process, once those of earlier tests have ended."""

import gc
import os
import time


def running_threads() -> int:
    """How many there are now."""
    return len(os.listdir("/proc/self/task"))


def settled_threads(seconds: float = 0.2) -> int:
    """How many there are when the number has not changed for a while."""
    gc.collect()
    count, since = running_threads(), time.monotonic()
    while time.monotonic() - since < seconds:
        time.sleep(0.01)
        if running_threads() != count:
            count, since = running_threads(), time.monotonic()
    return count
