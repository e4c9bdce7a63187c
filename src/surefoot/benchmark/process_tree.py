"""Process ids, CPU time and RAM of a process and its descendants, and their peak RAM by sampling."""

import os
import time

import psutil

FACTS = ["ppid", "cpu_times", "memory_info"]
SHORTEST_PAUSE_S = 0.02
_PAUSE_FACTOR = 4
"""Ratio of pauses to samples: sampling inspects every process, and must take at most a fifth of one core."""


def members(root: int) -> list[int]:
    """The pids of `root`, its descendants, and orphaned processes of its session."""
    return [process.pid for process in _tree(root)]


def cpu_seconds(root: int) -> float:
    """Total CPU time of the running processes of a tree."""
    times = [process.info["cpu_times"] for process in _tree(root)]
    return float(sum(one.user + one.system for one in times if one is not None))


def tree_ram(root: int) -> int | None:
    """RAM of a process tree in bytes, or None once it has ended.

    Private pages of all processes are added up. Library files and shared memory count once per tree, with the size in
    its largest process: workers map the same ones, and so may unrelated processes that use torch.
    """
    found = [process.info["memory_info"] for process in _tree(root)]
    # Only Linux reports shared memory; on other systems it counts in every process.
    pages = [(one.rss, getattr(one, "shared", 0)) for one in found if one is not None]
    return sum(resident - shared for resident, shared in pages) + max(shared for _, shared in pages) if pages else None


def _tree(root: int) -> list[psutil.Process]:
    """A process with its `FACTS`, read at once; a fact is None if the system does not report it."""
    processes = list(psutil.process_iter(FACTS))
    known = {process.pid for process in processes if root in (process.pid, _session(process.pid))}
    while children := {process.pid for process in processes if process.info["ppid"] in known} - known:
        known |= children
    return [process for process in processes if process.pid in known]


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:  # it has ended, or belongs to another user
        return None


class PeakRam:
    """Sampled while waiting for the tree, and never during timed windows."""

    def __init__(self, root: int) -> None:
        self._root = root
        self.peak: int | None = None
        self.pause_s = SHORTEST_PAUSE_S

    def sample(self) -> None:
        """Take one sample; `pause_s` is the pause before the next one."""
        began = time.perf_counter()
        now = tree_ram(self._root)
        if now is not None:
            self.peak = max(self.peak or 0, now)
        self.pause_s = max(SHORTEST_PAUSE_S, _PAUSE_FACTOR * (time.perf_counter() - began))
