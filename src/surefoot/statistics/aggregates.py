"""Aggregate scores over runs and tasks with stratified bootstrap intervals.

The figures are those of Agarwal et al. 2021, "Deep reinforcement learning at the edge of the statistical precipice".
The bootstrap draws by counters, so the same scores always have the same intervals.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.statistics.risk import Estimate, Floats, resampled

RESAMPLES = 10_000
FEWEST = 3
"""Runs below which an interval says little: a bootstrap draws only from the runs that there are."""
_BOUNDS = (2.5, 97.5)

Scores = Sequence[Sequence[float]]
"""The scores of the runs of each task; tasks may have different numbers of runs."""


@dataclass(frozen=True)
class Aggregate:
    """Scores in three figures, each with its 95% interval."""

    mean: Estimate
    """Mean over the tasks of the mean of each."""
    iqm: Estimate
    """Interquartile mean: the mean of the middle half of all runs."""
    median: Estimate
    """Median over the tasks of the mean of each; for a single task, the median over its runs."""

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        return {name: getattr(self, name).to_json() for name in ("mean", "iqm", "median")}


def aggregate(scores: Scores) -> Aggregate:
    """Aggregate the scores of one or several tasks; those of several tasks must have the same scale."""
    drawn = [resampled(own, RESAMPLES, stratum) for stratum, own in enumerate(scores)]
    own = [np.asarray(one, dtype=np.float64)[None] for one in scores]
    return Aggregate(_estimate(_mean, own, drawn), _estimate(_iqm, own, drawn), _estimate(_median, own, drawn))


def improvement(ours: Scores, theirs: Scores) -> Estimate:
    """Probability that a run of ours scores higher than one of theirs, mean over the tasks; ties count half."""
    own = [np.asarray(one, dtype=np.float64)[None] for one in (*ours, *theirs)]
    drawn = [resampled(one[0].tolist(), RESAMPLES, stratum) for stratum, one in enumerate(own)]
    return _estimate(lambda samples: _improvement(samples[: len(ours)], samples[len(ours) :]), own, drawn)


def trimmed_mean(values: Floats) -> Floats:
    """Mean of values `[..., N]` without the lowest and the highest quarter, of which whole values are cut: `[...]`."""
    cut = values.shape[-1] // 4
    kept: Floats = np.sort(values, axis=-1)[..., cut : values.shape[-1] - cut].mean(axis=-1)
    return kept


def mean_band(values: Floats) -> tuple[Floats, Floats]:
    """The 95% interval of the mean over runs of values `[runs, T]`: two `[T]`; the range if there are few runs."""
    count = len(values)
    if count < FEWEST:
        return values.min(axis=0), values.max(axis=0)
    chosen = resampled(list(range(count))).astype(np.int64)
    shares = np.stack([(chosen == run).mean(axis=1) for run in range(count)], axis=1)
    low, high = np.percentile(shares @ values, _BOUNDS, axis=0)
    return low, high


def _estimate(figure: Callable[[list[Floats]], Floats], own: list[Floats], drawn: list[Floats]) -> Estimate:
    low, high = np.percentile(figure(drawn), _BOUNDS)
    return Estimate(float(figure(own)[0]), float(low), float(high))


def _mean(samples: list[Floats]) -> Floats:
    mean: Floats = _task_means(samples).mean(axis=-1)
    return mean


def _iqm(samples: list[Floats]) -> Floats:
    return trimmed_mean(np.concatenate(samples, axis=-1))


def _median(samples: list[Floats]) -> Floats:
    values: Floats = np.median(samples[0] if len(samples) == 1 else _task_means(samples), axis=-1)
    return values


def _task_means(samples: list[Floats]) -> Floats:
    return np.stack([sample.mean(axis=-1) for sample in samples], axis=-1)


def _improvement(ours: list[Floats], theirs: list[Floats]) -> Floats:
    tasks = []
    for mine, yours in zip(ours, theirs, strict=True):
        signs = np.sign(mine[:, :, None] - yours[:, None, :])
        tasks.append((1 + signs.mean(axis=(1, 2))) / 2)
    mean: Floats = np.mean(tasks, axis=0)
    return mean
