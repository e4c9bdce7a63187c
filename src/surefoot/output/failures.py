"""Exceptions of code that Surefoot calls but does not own: envs, hooks, terms, sinks. It may even call sys.exit."""

import signal
import threading
import traceback

_LONGEST = 300
"""Maximum number of characters of a quoted error message; the traceback has all of it."""


def brief(error: BaseException) -> str:
    """An exception in one line of bounded length."""
    try:
        text = str(error)
    except Exception:
        text = "(its message cannot be read)"
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    shortened = line if len(line) <= _LONGEST else line[:_LONGEST] + "..."
    return f"{type(error).__name__}: {shortened}" if shortened else type(error).__name__


def origin(error: BaseException) -> str:
    """The file and line that raised an exception."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename}, line {frames[-1].lineno}" if frames else "an unknown place"


def let_interrupts_through(error: BaseException) -> None:
    """Raise a KeyboardInterrupt again if it may be a real Ctrl-C.

    A run handles SIGINT itself, so a KeyboardInterrupt inside a run was raised by somebody's code.
    """
    is_main = threading.current_thread() is threading.main_thread()
    can_be_real = is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if isinstance(error, KeyboardInterrupt) and can_be_real:
        raise error
