"""What happens to a process when the one that started it ends."""

import ctypes
import sys

_PR_SET_PDEATHSIG = 1


def signal_at_end_of_parent(number: int) -> None:
    """Ask Linux to send this process a signal when its parent ends, for whatever reason."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
