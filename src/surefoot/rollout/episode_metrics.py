"""Summarizes the metrics of steps as one number per metric and episode."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.envs.protocol import ALL_ROWS
from surefoot.storage.saved import Saved


class EpisodeMetrics:
    """Tracks the metrics of each row's running episode across rollouts, over valid steps only.

    The number of an episode is the total (`sum`; a step without a value adds nothing), the mean over the steps that
    have a value (`mean`), or the value of the final step (`last`); NaN if there is none.
    """

    def __init__(self, metrics: Mapping[str, str], num_rows: int) -> None:
        self.names = tuple(metrics)
        self._total = np.zeros((num_rows, len(metrics)))
        self._count = np.zeros((num_rows, len(metrics)), dtype=np.int64)
        self._is_mean, self._is_last = ([kind == wanted for kind in metrics.values()] for wanted in ("mean", "last"))

    def absorb(
        self, values: NDArray[np.float32], ended: NDArray[np.bool_], valid: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Add steps `[T, N, M]` with flags `[T, N]`; returns `[E, M]` of finished episodes, in order of their ends."""
        if not self.names:
            return np.zeros((int((ended & valid).sum()), 0))
        is_given = valid[:, :, None] & ~np.isnan(values)
        numbers = np.where(is_given, values.astype(np.float64), 0.0)
        finished = [np.zeros((0, len(self.names)))]
        begin = 0
        for step in map(int, np.flatnonzero(ended.any(axis=1))):
            self._advance(numbers[begin : step + 1], is_given[begin : step + 1])
            finished.append(self._of_episodes(values[step], ended[step] & valid[step]))
            self._total[ended[step]], self._count[ended[step]] = 0.0, 0
            begin = step + 1
        self._advance(numbers[begin:], is_given[begin:])
        return np.concatenate(finished)

    def _advance(self, numbers: NDArray[np.float64], is_given: NDArray[np.bool_]) -> None:
        self._total += numbers.sum(axis=0)
        self._count += is_given.sum(axis=0)

    def _of_episodes(self, final: NDArray[np.float32], rows: NDArray[np.bool_]) -> NDArray[np.float64]:
        total, count = self._total[rows], self._count[rows]
        mean = np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)
        return np.where(self._is_last, final[rows], np.where(self._is_mean, mean, total))

    def state(self) -> dict[str, Any]:
        """For checkpoints."""
        return {"names": list(self.names), "total": self._total.copy(), "count": self._count.copy()}

    def check_state(self, saved: Saved, num_rows: int) -> None:
        """Check types and shapes; the metrics may be others. Totals may be NaN: unknown."""
        names = [entry.text() for entry in saved["names"].items()]
        for name, kind in (("total", "f"), ("count", "i")):
            array = saved[name].array()
            if not isinstance(array, np.ndarray) or array.shape != (num_rows, len(names)) or array.dtype.kind != kind:
                raise saved[name].wrong(f"an array of shape {(num_rows, len(names))}")

    def load_state(self, state: Mapping[str, Any] | None, is_running: NDArray[np.bool_]) -> None:
        """Restore from a checkpoint; metrics of running episodes that it does not have are unknown."""
        if state is not None and tuple(state["names"]) == self.names and len(state["total"]) == len(self._total):
            self._total, self._count = np.array(state["total"]), np.array(state["count"])
        else:
            self._total[is_running], self._count[is_running] = np.nan, 1

    def forget_running(self, rows: slice = ALL_ROWS) -> None:
        """The episodes of the rows were cut off."""
        self._total[rows], self._count[rows] = 0.0, 0

    def running(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Totals and numbers of values of the running episodes."""
        return self._total, self._count


def mean_of_known(values: Any) -> float | None:
    """The mean of the values that are not NaN, or None if all are."""
    known = np.asarray(values, dtype=np.float64)
    known = known[~np.isnan(known)]
    return float(known.mean()) if len(known) else None
