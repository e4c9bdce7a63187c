"""Lines with a label, wrapped between words on a terminal; files and pipes get them whole.

Commands are never wrapped, so that they can be copied.
"""

import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

LABEL = 10
"""Width of the labels."""
_KEPT = "\x1f"
"""Stands for a space where a line must not be broken."""


def tell(label: str, text: str) -> None:
    """Print a text behind its label, now."""
    print(wrapped(f"{label:{LABEL}s}{text}", LABEL), flush=True)


def tell_next(*commands: Sequence[str | Path]) -> None:
    """Print what the user may type next, one command per line."""
    for index, words in enumerate(commands):
        print(f"{'' if index else 'next':{LABEL}s}{shlex.join(map(str, words))}", flush=True)


def terminal_width() -> int | None:
    """Columns of the terminal; None for files and pipes."""
    return shutil.get_terminal_size().columns if sys.stdout is not None and sys.stdout.isatty() else None


def wrapped(line: str, indent: int) -> str:
    """A line as it is, or on a terminal in lines of its width; a long word, such as a path, stays whole."""
    width = terminal_width()
    if width is None:
        return line
    whole = re.sub(r"'surefoot [^']*'", lambda quoted: quoted[0].replace(" ", _KEPT), line)
    lines = textwrap.fill(
        whole,
        max(20, width),
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
    )
    return lines.replace(_KEPT, " ")
