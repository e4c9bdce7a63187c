"""Streams and terminals show foreign text without its control characters."""

import io
import sys

from rich.table import Table
from rich.text import Text

from surefoot.output.streams import LastingStream, harmless
from surefoot.output.terminal import Terminal
from tests.output.hostile_text import BACK, HOSTILE, TITLE


def test_controls_are_shown_and_colors_are_dropped() -> None:
    assert harmless("a\tb\nc") == "a\tb\nc"
    assert harmless("\x1b[1;31mred\x1b[0m") == "red"
    assert harmless("\x1b\x1b[0m[2J") == "\ufffd[2J"
    assert harmless("\r 50%") == "\r 50%", "a progress bar"
    assert harmless("healthy\rx") == "healthy\ufffdx"
    assert not {"\x1b", "\x07", "\x9b", "\r", "\x08", "\u202e"} & set(harmless(HOSTILE))


def test_rich_keeps_its_own_controls() -> None:
    screen = io.StringIO()
    sys_stream, sys.stdout = sys.stdout, LastingStream(screen, "stdout")
    try:
        console = Terminal(force_terminal=True, color_system="standard", width=60)
        table = Table()
        table.add_column(HOSTILE)
        table.add_row(Text(HOSTILE, style="green"))
        console.print(table)
        console.print(HOSTILE, markup=False)
        console.show_cursor(False)
        print(HOSTILE)
    finally:
        sys.stdout = sys_stream
    shown = screen.getvalue()
    assert "\x1b[32m" in shown
    assert "\x1b[?25l" in shown
    assert TITLE[:2] not in shown
    assert BACK[:4] not in shown
    assert "\x07" not in shown
    assert "\x1b[31m" not in shown
