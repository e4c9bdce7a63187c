"""Only one process at a time works in the folder of a run, of several seeds, of a population or of a sweep."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from surefoot.errors import DirectoryInUseError, RunDirectoryError
from surefoot.storage.files import open_own


@contextmanager
def locked(folder: Path, what: str = "run directory") -> Iterator[None]:
    """Create a folder and hold its lock; typed errors if it is in use, or cannot be created or locked."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = take_lock(folder, what)
    except OSError as error:
        raise RunDirectoryError(
            f"{folder} is not writable ({error.filename}: {error.strerror}); choose another with --run-dir"
        ) from error
    with lock:
        yield


def take_lock(folder: Path, what: str = "run directory") -> IO[str]:
    """The lock of a folder, until it is closed; an error if another process has it."""
    lock = os.fdopen(open_own(folder / "lock", os.O_RDWR), "r+", encoding="utf-8")
    try:
        # The kernel releases this lock when its process dies, so there are no stale locks.
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.seek(0)
        holder = lock.read().strip() or "unknown"
        lock.close()
        raise DirectoryInUseError(
            f"the {what} {folder} is in use by process {holder}; stop it or choose another with --run-dir"
        ) from error
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()
    return lock


def unwritable(folder: Path, error: OSError) -> RunDirectoryError:
    """What the work of several runs says when one of its files cannot be written."""
    return RunDirectoryError(
        f"cannot write {error.filename or folder} ({error.strerror}); remove the cause and repeat the command, or"
        " choose another directory with --run-dir"
    )
