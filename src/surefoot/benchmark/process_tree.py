"""A process and all that it started, as Linux's /proc shows them: who they are, their memory, their processor time."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")
_PARENT, _SESSION, _USER_TIME, _SYSTEM_TIME = 1, 3, 11, 12
"""Places in /proc/PID/stat, counted after the command in parentheses (which may hold spaces)."""


@dataclass(frozen=True)
class _Entry:
    pid: int
    parent: int
    session: int
    cpu_s: float


def members(root: int) -> list[int]:
    """The pids of `root`, of its descendants, and of those whose parent has ended but whose session it leads."""
    return [entry.pid for entry in _tree(root)]


def cpu_seconds(root: int) -> float:
    """Processor time that the living members of a tree have used so far."""
    return sum(entry.cpu_s for entry in _tree(root))


def tree_memory(root: int) -> int | None:
    """Bytes that a whole tree occupies, or None where the system does not tell.

    Pages of the heap and of shared memory count in proportion to how many processes map them (PSS), so that what
    workers share counts once. Pages of library files count once a tree, as much as its largest process maps: PSS would
    split them with every other process that happens to use torch, and the figure would depend on who else is running.
    """
    shares = [share for share in map(_memory_share, members(root)) if share is not None]
    if not shares:
        return None
    return sum(own for own, _ in shares) + max(files for _, files in shares)


def _tree(root: int) -> list[_Entry]:
    entries = list(_entries())
    known = {entry.pid for entry in entries if root in (entry.pid, entry.session)}
    grows = True
    while grows:
        children = {entry.pid for entry in entries if entry.parent in known} - known
        known |= children
        grows = bool(children)
    return [entry for entry in entries if entry.pid in known]


def _entries() -> Iterable[_Entry]:
    names = os.listdir(PROC) if PROC.exists() else []
    for name in filter(str.isdigit, names):
        try:
            text = (PROC / name / "stat").read_text()
        except OSError:  # ended meanwhile
            continue
        fields = text[text.rindex(")") + 2 :].split()
        cpu_s = (int(fields[_USER_TIME]) + int(fields[_SYSTEM_TIME])) / _TICKS
        yield _Entry(int(name), int(fields[_PARENT]), int(fields[_SESSION]), cpu_s)


def _memory_share(pid: int) -> tuple[int, int] | None:
    """(heap and shared memory in proportion, mapped files in full), in bytes."""
    try:
        proportional = _kilobytes(PROC / str(pid) / "smaps_rollup")
        resident = _kilobytes(PROC / str(pid) / "status")
    except OSError:  # ended meanwhile, or not ours
        return None
    if "Pss_Anon" not in proportional or "RssFile" not in resident:
        return None
    own = proportional["Pss_Anon"] + proportional.get("Pss_Shmem", 0)
    return own * 1024, resident["RssFile"] * 1024


def _kilobytes(file: Path) -> dict[str, int]:
    lines = (line.split() for line in file.read_text().splitlines())
    return {words[0].rstrip(":"): int(words[1]) for words in lines if len(words) == 3 and words[2] == "kB"}
