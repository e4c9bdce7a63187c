"""Checks a run directory before anything slow is imported; `training/run_directory.py` uses it afterwards."""

import errno
import os
from pathlib import Path

from surefoot.core.errors import RunDirectoryError


def check_new(path: Path) -> None:
    """Refuse a directory for a new run that holds a run already or cannot be written."""
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


def check_run(path: Path) -> None:
    """Refuse what is not the directory of a run."""
    if not os.path.isfile(path / "config.yaml"):  # pathlib's raises if the directory is not accessible
        raise RunDirectoryError(
            f"{path} is not a run directory (it has no config.yaml); pass the one that 'surefoot train' printed"
        )
