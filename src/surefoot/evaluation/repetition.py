"""Finds out whether all episodes of an evaluation are the same one."""

from zlib import crc32

from surefoot.data.tree import tree_items
from surefoot.envs.protocol import Slot


class Repetition:
    """Compares checksums of the observations and rewards of all episodes; free of cost once two of them differ."""

    def __init__(self, first: Slot) -> None:
        self._traces = [0] * len(first.reward)
        self._finished = set[int]()
        self.is_possible = True
        """Whether no two episodes have differed so far."""
        self._observe(first)

    def absorb(self, slot: Slot) -> None:
        """Add a step of all rows."""
        if not self.is_possible:
            return
        for row in range(len(self._traces)):
            if not slot.valid[row]:
                self._traces[row] = 0  # an episode begins with this observation
                continue
            self._traces[row] = crc32(slot.reward[row].tobytes(), self._traces[row])
            if slot.ended[row]:
                self._finished.add(self._traces[row])
                self._traces[row] = 0
        self._observe(slot)

    def _observe(self, slot: Slot) -> None:
        for _, leaf in tree_items(slot.obs):
            self._traces = [crc32(leaf[row].tobytes(), trace) for row, trace in enumerate(self._traces)]
        # Until the first episode ends, all rows are at the same step.
        self.is_possible = len(self._finished or set(self._traces)) == 1
