"""Files that Surefoot opens: never one that blocks or has no end, such as a named pipe or a device.

In those that only Surefoot writes, symbolic links are not followed, because their targets belong to somebody else.
"""

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from surefoot.machine.ram import free_ram, readable

_COPIES = 8
"""Memory that a text takes once it is parsed, in sizes of its file."""


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
    return _regular(descriptor, path)


def open_regular(path: Path) -> BinaryIO:
    """A regular file, or a link to one, for reading; anything else is an OSError at once."""
    return os.fdopen(_regular(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), path), "rb")


def read_regular(path: Path, most: int | None = None) -> bytes:
    """The contents of a regular file; one larger than `most`, or than the free memory allows, is an OSError."""
    limit = free_ram() // _COPIES if most is None else most
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > limit:
            raise OSError(errno.EFBIG, f"it has {readable(size)}; at most {readable(limit)} can be read", str(path))
        return file.read(size)


def readable_text(path: Path) -> str:
    """The text of a regular file, or nothing if it cannot be read."""
    try:
        return read_regular(path).decode(errors="replace")
    except OSError:
        return ""


def beginning(path: Path, size: int) -> bytes:
    """The first bytes of a regular file, or nothing if it cannot be read."""
    try:
        with open_regular(path) as file:
            return file.read(size)
    except OSError:
        return b""


def _regular(descriptor: int, path: Path) -> int:
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
        data, written = memoryview(text.encode(errors="replace")), 0
        try:
            while written < len(data):
                written += os.write(self._descriptor, data[written:])
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._descriptor, os.fstat(self._descriptor).st_size - written)
            raise

    def close(self) -> None:
        """Close the file; safe to call twice."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)

    def _open(self) -> None:
        self._descriptor = open_own(self._path, os.O_WRONLY | os.O_APPEND)
        self._opened = os.fstat(self._descriptor)

    def _is_in_place(self) -> bool:
        try:
            return os.path.samestat(os.lstat(self._path), self._opened)
        except OSError:
            return False
