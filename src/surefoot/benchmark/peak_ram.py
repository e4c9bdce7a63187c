"""The most RAM that a tree of processes was seen to occupy."""

import time

from surefoot.benchmark.process_tree import tree_ram

SHORTEST_PAUSE_S = 0.02
_PAUSE_FACTOR = 4
"""Pauses to samples, which look at every process of the machine: sampling takes a fifth of one core at most."""


class PeakRam:
    """Sampled by whoever waits for the tree, and only while nothing is timed."""

    def __init__(self, root: int) -> None:
        self._root = root
        self.peak: int | None = None
        self.pause_s = SHORTEST_PAUSE_S

    def sample(self) -> None:
        """Look once; `pause_s` says how long to wait before the next look."""
        began = time.perf_counter()
        now = tree_ram(self._root)
        if now is not None:
            self.peak = max(self.peak or 0, now)
        self.pause_s = max(SHORTEST_PAUSE_S, _PAUSE_FACTOR * (time.perf_counter() - began))
