"""Learns on one thread while other processes keep the cores busy: threads that wait for each other are slowest then."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from surefoot.telemetry.machine import waited_s

_log = logging.getLogger("surefoot")

CROWDED = 0.25
"""Fraction of an update that is spent waiting for a core, from which on the machine counts as crowded."""
_NOTICEABLE_S = 0.005
_IN_A_ROW = 3
"""Crowded updates in a row before a thread is given up: a single one may be chance."""
_FEWEST, _MOST = 20, 640
"""Updates on one thread before all are tried again; twice as many each time that the machine is still crowded."""

ONE_THREAD = "learning on one thread until they are done"


class Crowd:
    """Decides on how many threads of the core the next update runs. The core gives the same bits with any number.

    When it first notices a crowd, it logs the remedy: PyTorch's threads are not changed during a run.
    """

    def __init__(self, remedy: str = ONE_THREAD, waited: Callable[[], float | None] = waited_s) -> None:
        self._remedy, self._waited = remedy, waited
        self._updates_left, self._pause, self._is_known = 0, _FEWEST, False
        self._in_a_row = 0

    @contextmanager
    def threads(self, most: int) -> Iterator[int]:
        """The number of threads of an update, which is watched."""
        count = 1 if self._updates_left else most
        began, waited = time.monotonic(), self._waited()
        yield count
        now = self._waited()
        if count == 1:
            self._updates_left = max(0, self._updates_left - 1)
        elif waited is not None and now is not None:
            self._judge(now - waited, time.monotonic() - began)

    def _judge(self, waited_s: float, took_s: float) -> None:
        if waited_s < max(_NOTICEABLE_S, CROWDED * took_s):
            self._pause, self._in_a_row = _FEWEST, 0
            return
        self._in_a_row += 1
        if self._in_a_row < _IN_A_ROW:
            return
        self._in_a_row = _IN_A_ROW - 1  # after a pause, one is enough
        self._updates_left, self._pause = self._pause, min(2 * self._pause, _MOST)
        if not self._is_known:
            self._is_known = True
            _log.info(
                "other processes keep the cores busy (%.0f %% of an update was spent waiting for one): %s",
                100 * waited_s / took_s,
                self._remedy,
            )
