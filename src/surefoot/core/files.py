"""Files that only Surefoot writes: symbolic links are not followed, because their targets belong to somebody else."""

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path


def open_own(path: Path, flags: int) -> int:
    """A descriptor of a regular file, which is created if it is missing; anything else is an OSError."""
    # Without O_NONBLOCK, a named pipe would block forever.
    always = os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags | always, 0o644)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "it is a symbolic link", os.fspath(path)) from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file", os.fspath(path))
    return descriptor


class AppendedFile:
    """A text file that grows piece by piece, each written at once and completely or not at all.

    If somebody deletes it, the next piece starts it again.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._descriptor = path, -1
        self._open()

    def write(self, text: str) -> None:
        """Append a piece; after an OSError the file is as it was before."""
        if not self._is_in_place():
            self.close()
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._open()
        size, data = os.fstat(self._descriptor).st_size, memoryview(text.encode(errors="replace"))
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._descriptor, size)
            raise

    def close(self) -> None:
        """Close the file; safe to call twice."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)

    def _open(self) -> None:
        self._descriptor = open_own(self._path, os.O_WRONLY | os.O_APPEND)

    def _is_in_place(self) -> bool:
        try:
            return os.path.samestat(os.lstat(self._path), os.fstat(self._descriptor))
        except OSError:
            return False
