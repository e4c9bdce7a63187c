"""A process and all that it started: who they are, their RAM, their processor time."""

import os

import psutil

FACTS = ["ppid", "cpu_times", "memory_info"]


def members(root: int) -> list[int]:
    """The pids of `root`, of its descendants, and of those whose parent has ended but whose session it leads."""
    return [process.pid for process in _tree(root)]


def cpu_seconds(root: int) -> float:
    """Processor time that the living members of a tree have used so far."""
    times = [process.info["cpu_times"] for process in _tree(root)]
    return float(sum(one.user + one.system for one in times if one is not None))


def tree_ram(root: int) -> int | None:
    """Bytes that a whole tree occupies, or None once it is gone.

    Private pages of all processes are added up. Library files and shared memory count once per tree, as much as
    its largest process maps: workers map the same ones, and so may unrelated processes that use torch.
    """
    found = [process.info["memory_info"] for process in _tree(root)]
    # Only Linux tells what is shared; elsewhere it counts in every process.
    pages = [(one.rss, getattr(one, "shared", 0)) for one in found if one is not None]
    return sum(resident - shared for resident, shared in pages) + max(shared for _, shared in pages) if pages else None


def _tree(root: int) -> list[psutil.Process]:
    """With its `FACTS`, all looked up at once; a fact is None where the system does not tell."""
    processes = list(psutil.process_iter(FACTS))
    known = {process.pid for process in processes if root in (process.pid, _session(process.pid))}
    while children := {process.pid for process in processes if process.info["ppid"] in known} - known:
        known |= children
    return [process for process in processes if process.pid in known]


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:  # it has ended, or belongs to somebody else
        return None
