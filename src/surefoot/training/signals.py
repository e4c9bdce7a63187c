"""SIGINT, SIGTERM and SIGHUP: the first signal finishes the iteration and saves, the second stops immediately."""

import logging
import os
import signal
import threading
from types import FrameType
from typing import Any

_log = logging.getLogger("surefoot")
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopSignal:
    """A context manager around a run; it has no effect outside the main thread."""

    def __init__(self) -> None:
        self.received: int | None = None
        """The first signal, in this process or in another one of the run."""
        self._is_first = True
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> "StopSignal":
        if threading.current_thread() is threading.main_thread():
            # Under nohup, SIGHUP is ignored and stays so.
            is_nohup = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            wanted = [number for number in _SIGNALS if not (is_nohup and number == signal.SIGHUP)]
            self._previous = {number: signal.signal(number, self._handle) for number in wanted}
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def is_requested(self) -> bool:
        """Whether the run should stop after this iteration."""
        return self.received is not None

    @property
    def exit_code(self) -> int:
        """130 after SIGINT, 143 after SIGTERM, 129 after SIGHUP, as shells expect."""
        return 0 if self.received is None else 128 + self.received

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if not self._is_first:
            os._exit(128 + number)
        self._is_first = False
        self.received = self.received or number
        name = signal.Signals(number).name
        _log.warning("%s received: finishing this iteration, then saving; send it again to stop immediately", name)
