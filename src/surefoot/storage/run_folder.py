"""Checks a run directory before anything slow is imported; `training/run_directory.py` uses it afterwards."""

import errno
import os
from pathlib import Path

from surefoot.errors import RunDirectoryError

RUN, SEEDS, SWEEP, POPULATION = "a run", "runs of several seeds", "a sweep", "a population"
_MARKS = {
    RUN: ("config.yaml",),
    SEEDS: ("seeds.yaml",),
    SWEEP: ("sweep.yaml", "sweep.db"),
    POPULATION: ("population.yaml", "population.jsonl"),
}
"""Files by which a directory is recognized."""


def refuse_other_kind(path: Path, own: str) -> None:
    """Refuse a directory that holds something else."""
    for kind, marks in _MARKS.items():
        if kind != own and any(os.path.isfile(path / mark) for mark in marks):
            raise RunDirectoryError(f"{path} contains {kind}; choose another directory with --run-dir")


def check_new(path: Path) -> None:
    """Refuse a directory for a new run that holds a run already or cannot be written."""
    refuse_other_kind(path, RUN)
    refuse_remains(path)
    if os.path.isfile(path / "config.yaml"):
        raise RunDirectoryError(
            f"{path} already contains a run; continue it with 'surefoot resume {path}' or choose another --run-dir"
        )
    nearest = next(folder for folder in (path, *path.absolute().parents) if os.path.lexists(folder))
    if reason := _obstacle(nearest):
        raise RunDirectoryError(f"the run directory {path} is not writable ({reason}); choose another with --run-dir")


def _obstacle(folder: Path) -> str:
    """Why nothing can be created in a folder, in the words of the system; empty if it can."""
    if not folder.is_dir():
        return os.strerror(errno.ENOTDIR)
    if os.access(folder, os.W_OK | os.X_OK):
        return ""
    return os.strerror(errno.EROFS if os.statvfs(folder).f_flag & os.ST_RDONLY else errno.EACCES)


def refuse_remains(path: Path) -> None:
    """Refuse a directory with checkpoints or records of a run whose config.yaml is missing: two runs would mix."""
    if os.path.isfile(path / "config.yaml"):
        return
    metrics, checkpoints = path / "metrics.jsonl", path / "checkpoints"
    is_written = os.path.isfile(metrics) and not os.path.islink(metrics) and metrics.stat().st_size > 0
    remains = [metrics] * is_written + [best for best in [path / "best.safetensors"] if os.path.isfile(best)]
    if os.path.isdir(checkpoints) and os.access(checkpoints, os.R_OK):
        remains += sorted(checkpoints.glob("step_*.safetensors"))
    if remains:
        raise RunDirectoryError(
            f"{path} has {remains[0].relative_to(path)} of a run, but not its config.yaml; restore it and resume the"
            " run, or choose another directory with --run-dir"
        )


def check_run(path: Path) -> None:
    """Refuse what is not the directory of a run."""
    if any(os.path.isfile(path / mark) for mark in _MARKS[POPULATION]):
        raise RunDirectoryError(f"{path} contains a population; continue it with 'surefoot population resume {path}'")
    if any(os.path.isfile(path / mark) for mark in _MARKS[SWEEP]):
        raise RunDirectoryError(f"{path} contains a sweep; repeat its command, 'surefoot sweep ...', to continue it")
    if not os.path.isfile(path / "config.yaml"):  # pathlib's raises if the directory is not accessible
        raise RunDirectoryError(
            f"{path} is not a run directory (it has no config.yaml); pass the one that 'surefoot train' printed"
        )
