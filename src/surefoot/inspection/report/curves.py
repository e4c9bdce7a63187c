"""Data of a curve: smoothing, downsampling of long series, spread over runs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from surefoot.inspection.report.reported_run import ReportedRun
from surefoot.statistics.aggregates import mean_band

Floats = NDArray[np.float64]

SMOOTHING = {"off": 0.0, "light": 0.02, "strong": 0.10}
"""Width of the window, as a fraction of the run's records."""


@dataclass(frozen=True)
class Curve:
    """A metric of one run: steps, seconds of training and values."""

    steps: Floats
    seconds: Floats
    values: Floats

    def smoothed(self, share: float) -> "Curve":
        """The curve smoothed by a centered moving average."""
        return Curve(self.steps, self.seconds, smooth(self.values, share))


@dataclass(frozen=True)
class Spread:
    """The mean over runs with its 95% bootstrap interval, or with the range of fewer than 3 runs."""

    steps: Floats
    seconds: Floats
    mean: Floats
    low: Floats
    high: Floats


def smooth(values: Floats, share: float) -> Floats:
    """Centered moving average; the window narrows at the ends, so there is no padding and no lag."""
    count = len(values)
    half = math.ceil(share * count / 2) if share > 0 else 0
    total = np.concatenate(([0.0], np.cumsum(values)))
    place = np.arange(count)
    reach = np.minimum(half, np.minimum(place, count - 1 - place))
    result: Floats = (total[place + reach + 1] - total[place - reach]) / (2 * reach + 1)
    return result


def thin(values: Floats, limit: int) -> NDArray[np.intp]:
    """Indices of at most `limit` values: both ends, and the minimum and maximum of each bin, so no spike is lost."""
    count = len(values)
    if count <= limit:
        return np.arange(count)
    edges = np.linspace(0, count, (limit - 2) // 2 + 1).astype(int)
    kept = {0, count - 1}
    for start, stop in pairwise(edges.tolist()):
        stretch = values[start:stop]
        kept |= {start + int(stretch.argmin()), start + int(stretch.argmax())}
    return np.array(sorted(kept), dtype=np.intp)


def spread(curves: Sequence[Curve], limit: int) -> Spread:
    """Spread over the runs that reached each step; it ends where fewer than half of them, or only one, continue."""
    grid = np.unique(np.concatenate([curve.steps for curve in curves]))
    if len(grid) > limit:
        grid = np.linspace(grid[0], grid[-1], limit)
    values = np.stack([_at(grid, curve.steps, curve.values) for curve in curves])
    seconds = np.stack([_at(grid, curve.steps, curve.seconds) for curve in curves])
    there = ~np.isnan(values)
    needed = min(len(curves), max(2, math.ceil(len(curves) / 2)))
    enough = there.sum(axis=0) >= needed
    if not enough.any():
        # Runs that never overlap have no spread; use the longest one.
        longest = max(curves, key=lambda curve: len(curve.steps))
        return Spread(longest.steps, longest.seconds, longest.values, longest.values, longest.values)
    values, seconds = values[:, enough], seconds[:, enough]
    low, high = _bands(values, there[:, enough])
    return Spread(grid[enough], np.nanmean(seconds, axis=0), np.nanmean(values, axis=0), low, high)


def _bands(values: Floats, there: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """The bands of points `[runs, T]`; those that the same runs reached are computed together."""
    low, high = np.empty(values.shape[1]), np.empty(values.shape[1])
    kinds, kind_of = np.unique(there, axis=1, return_inverse=True)
    for kind, runs in enumerate(kinds.T):
        here = kind_of.ravel() == kind
        low[here], high[here] = mean_band(values[np.ix_(runs, here)])
    return low, high


def _at(grid: Floats, steps: Floats, values: Floats) -> Floats:
    result: Floats = np.interp(grid, steps, values, left=np.nan, right=np.nan)
    return result


def metric_curve(run: ReportedRun, metric: str, factor: float = 1) -> Curve | None:
    """A metric with its steps and times; None if it was never recorded."""
    times = run.seconds or [0.0] * len(run.records)
    found = [
        (record["step"], seconds, factor * record[metric])
        for record, seconds in zip(run.records, times, strict=True)
        if metric in record
    ]
    return Curve(*np.array(found, dtype=np.float64).T) if found else None
