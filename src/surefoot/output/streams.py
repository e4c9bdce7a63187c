"""stdout and stderr that do not end a run: a full disk, a closed pipe and a terminal without Unicode lose only text.

They are also the border to the terminal: text of files and of other programs is shown, but cannot control it.
"""

import errno
import logging
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import Any

_log = logging.getLogger("surefoot")
_COLORS = re.compile(r"\x1b\[[\d;:]*m")
_CONTROLS = re.compile(r"(?!^\r|\r$)[\x00-\x08\x0b-\x1f\x7f-\x9f\udc80-\udc9f\u202a-\u202e\u2066-\u2069]")
"""All but tabs, newlines and a carriage return at an end, which progress bars need; also changes of the direction."""


def harmless(text: str) -> str:
    """A text without what would control a terminal: colors are dropped, and other controls are made visible."""
    return _CONTROLS.sub("\ufffd", _COLORS.sub("", text))


class LastingStream:
    """Passes everything on to a stream until a write fails, and then drops everything."""

    def __init__(self, stream: Any, name: str) -> None:
        self._name = name
        self.failure: Exception | None = None
        """Why text was lost, if it was."""
        if stream is None:  # closed before Python started
            self.failure = OSError(errno.EBADF, "it is closed")
            stream = open(os.devnull, "w")  # noqa: SIM115
        self._stream = stream

    def write(self, text: str) -> int:
        """Write, or drop the text."""
        return self.write_styled(harmless(text))

    def write_styled(self, text: str) -> int:
        """Write text that may control the terminal."""
        try:
            self._stream.write(text)
        except UnicodeEncodeError:
            encoding = self._stream.encoding
            return self.write_styled(text.encode(encoding, "replace").decode(encoding))  # question marks
        except (OSError, ValueError) as error:  # ValueError: somebody closed it
            self._give_up(error)
        return len(text)

    def flush(self) -> None:
        """Flush, or drop what was not written yet."""
        try:
            self._stream.flush()
        except (OSError, ValueError) as error:
            self._give_up(error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _give_up(self, error: Exception) -> None:
        if self.failure is not None:
            return
        self.failure = error
        # What is still buffered would fail again when the interpreter exits.
        with suppress(OSError, ValueError):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self._stream.fileno())
            os.close(null)
        _log.info("%s failed (%s): no further output is written to it", self._name, error)


class Styled:
    """A stream for text that may control the terminal, such as that of rich."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write text as it is."""
        write = self._stream.write_styled if isinstance(self._stream, LastingStream) else self._stream.write
        return int(write(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def styled_streams() -> Iterator[None]:
    """Inside, everything that is printed may control the terminal."""
    with redirect_stdout(Styled(sys.stdout)), redirect_stderr(Styled(sys.stderr)):
        yield


@contextmanager
def lasting_streams() -> Iterator[LastingStream]:
    """Replace stdout and stderr, also for the code of envs; yields stdout."""
    _open_standard_descriptors()
    before = sys.stdout, sys.stderr
    output, errors = LastingStream(sys.stdout, "stdout"), LastingStream(sys.stderr, "stderr")
    sys.stdout, sys.stderr = output, errors
    try:
        yield output
    finally:
        output.flush()
        errors.flush()
        sys.stdout, sys.stderr = before


def _open_standard_descriptors() -> None:
    """Open the null device where one is closed: else the next file that is opened would receive what is printed."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number
