"""Peak RAM of a process tree, by sampling."""

import time

from surefoot.benchmark.process_tree import tree_ram

SHORTEST_PAUSE_S = 0.02
_PAUSE_FACTOR = 4
"""Ratio of pauses to samples: sampling inspects every process, and must take at most a fifth of one core."""


class PeakRam:
    """Sampled while waiting for the tree, and never during timed windows."""

    def __init__(self, root: int) -> None:
        self._root = root
        self.peak: int | None = None
        self.pause_s = SHORTEST_PAUSE_S

    def sample(self) -> None:
        """Take one sample; `pause_s` is the pause before the next one."""
        began = time.perf_counter()
        now = tree_ram(self._root)
        if now is not None:
            self.peak = max(self.peak or 0, now)
        self.pause_s = max(SHORTEST_PAUSE_S, _PAUSE_FACTOR * (time.perf_counter() - began))
