"""Lines with a label, wrapped between words on a terminal; files and pipes get them whole."""

import shutil
import sys
import textwrap

LABEL = 10
"""Width of the labels."""


def tell(label: str, text: str) -> None:
    """Print a text behind its label, now."""
    print(wrapped(f"{label:{LABEL}s}{text}", LABEL), flush=True)


def wrapped(line: str, indent: int) -> str:
    """A line as it is, or on a terminal in lines of its width; a long word, such as a path, stays whole."""
    if sys.stdout is None or not sys.stdout.isatty():
        return line
    return textwrap.fill(
        line,
        max(20, shutil.get_terminal_size().columns),
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
    )
