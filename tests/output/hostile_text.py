"""Text that tries to control a terminal."""

TITLE, BACK = "\x1b]0;owned\x07", "\x1b[1A\x1b[2K"
HOSTILE = f"{TITLE}{BACK}\x1b[31mred\x9b2J\r\x08\u202eok"
