"""RAM usage of a run, and the time it waits for a CPU (Linux only)."""

import math
import os
import time

import psutil

from surefoot.machine.ram import ram_limits
from surefoot.telemetry import names

_SCHEDULER = "/proc/thread-self/schedstat"
_CPU_WAIT_S, _RAM_S = 0.1, 1.0
"""Seconds between two readings: a file of the system takes longer to read than most of what an iteration does."""


def waited_s() -> float | None:
    """Seconds that this thread has waited for a CPU so far; None if the system does not say."""
    try:
        file = os.open(_SCHEDULER, os.O_RDONLY)  # a third of the time that a text file takes
        try:
            return int(os.read(file, 100).split()[1]) / 1e9
        finally:
            os.close(file)
    except (OSError, ValueError, IndexError):
        return None


class CpuWait:
    """The fraction of time that this thread waits for a CPU because other processes occupy all of them.

    Read ten times a second at most.
    """

    def __init__(self) -> None:
        self._last: tuple[float, float] | None = None
        self._metrics: dict[str, float] = {}
        self.metrics()

    def metrics(self) -> dict[str, float]:
        """The fraction between the last two readings."""
        now, last = time.monotonic(), self._last
        if last is not None and self._metrics and now - last[0] < _CPU_WAIT_S:
            return self._metrics
        waited = waited_s()
        self._last, self._metrics = None if waited is None else (now, waited), {}
        if waited is not None and last is not None and now > last[0]:
            self._metrics = {names.CPU_WAIT: min(1.0, max(0.0, (waited - last[1]) / (now - last[0])))}
        return self._metrics


class Ram:
    """Megabytes used by this process, and the available fraction of the machine's or container's RAM.

    Read once a second. Nothing if the system does not say, for example because an env has used up all file descriptors.
    """

    def __init__(self) -> None:
        self._read_at, self._metrics = -math.inf, dict[str, float]()

    def metrics(self) -> dict[str, float]:
        """What was read last, at most a second ago."""
        now = time.monotonic()
        if now - self._read_at >= _RAM_S:
            self._read_at, self._metrics = now, _read_ram()
        return self._metrics


def _read_ram() -> dict[str, float]:
    try:
        left = min(limit.available / limit.total for limit in ram_limits())
        return {names.RAM: psutil.Process().memory_info().rss / 2**20, names.RAM_AVAILABLE: left}
    except (OSError, psutil.Error):
        return {}
