"""Risk figures of a sample of returns: CVaR, quantiles, the ratio of mean and std, with bootstrap intervals.

The bootstrap draws by counters (philox), so the same returns always have the same intervals.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.errors import ConfigError
from surefoot.philox import Stream, words
from surefoot.statistics.alpha import DEFAULT_ALPHA, check_alpha

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
RESAMPLES = 1000
MOST_KEPT = 1_000_000
"""Numbers of a bootstrap above which they are drawn again each time."""

Floats = NDArray[np.float64]


def cvar(values: ArrayLike, alpha: float, weights: ArrayLike | None = None) -> Floats:
    """Mean of the worst `alpha` share of values `[..., N]`, in any order: `[...]`; float() it for one sample.

    For n values of equal weight, k = floor(alpha n) are taken whole, and the next one counts with the rest,
    alpha n - k. So the CVaR is continuous in alpha, the minimum for alpha <= 1/n and the mean for alpha = 1.
    `weights` (default: equal) are relative, one per value: the tail is then an alpha share of their sum.
    """
    sample = np.asarray(values, dtype=np.float64)
    order = np.argsort(sample, axis=-1)
    ascending = np.take_along_axis(sample, order, -1)
    worst = ascending[..., :1]
    in_tail = tail_weights(np.take_along_axis(_weights(weights, sample), order, -1), check_alpha(alpha))
    share = in_tail / in_tail.sum(axis=-1, keepdims=True)
    # Added to the worst value, so that rounding never gives a result below it.
    tail: Floats = worst[..., 0] + (share * (ascending - worst)).sum(axis=-1)
    return tail


def tail_weights(weights: ArrayLike, alpha: float) -> Floats:
    """The part of each weight `[..., N]`, worst value first, that belongs to the worst `alpha` share."""
    whole = np.asarray(weights, dtype=np.float64)
    upto = np.cumsum(whole, axis=-1)
    inside: Floats = np.clip(alpha * upto[..., -1:] - (upto - whole), 0.0, whole)
    return inside


def _weights(weights: ArrayLike | None, sample: Floats) -> Floats:
    if weights is None:
        return np.ones_like(sample)
    given = np.broadcast_to(np.asarray(weights, dtype=np.float64), sample.shape)
    if not (given >= 0).all() or not (given.sum(axis=-1) > 0).all():
        raise ConfigError("weights: must be at least 0, and not all 0")
    return given


def sharpe(values: ArrayLike) -> Floats:
    """Mean divided by the standard deviation of values `[..., N]`: `[...]`; NaN if all values are equal."""
    sample = np.asarray(values, dtype=np.float64)
    std = sample.std(axis=-1)
    # The std of equal values may differ from 0 in its last bits; that of tiny differences may be 0.
    has_spread = (np.ptp(sample, axis=-1) > 0) & (std > 0)
    ratio: Floats = sample.mean(axis=-1) / np.where(has_spread, std, np.nan)
    return ratio


class Estimate(NamedTuple):
    """A figure with its 95% bootstrap interval."""

    value: float
    low: float
    high: float

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        return {"value": self.value, "interval": [self.low, self.high]}


@dataclass(frozen=True)
class Risk:
    """Risk figures of episode returns; higher returns are better."""

    alpha: float
    mean: Estimate
    cvar: Estimate
    """Mean of the worst alpha share of the episodes."""
    quantiles: dict[float, Estimate]
    """By share, linearly interpolated between returns."""
    worst_reward: float
    worst_episode: int
    """Index of the episode, from 0."""
    sharpe: Estimate | None
    """Mean divided by the standard deviation; None for one episode or equal returns."""
    win_rate: Estimate | None = None
    """Share of won episodes; None unless the env reports it."""

    def to_json(self) -> dict[str, Any]:
        """As JSON; quantiles by percent."""
        return {
            "alpha": self.alpha,
            "cvar": self.cvar.to_json(),
            "quantiles": {f"{100 * share:g}": found.to_json() for share, found in self.quantiles.items()},
            "worst": {"reward": self.worst_reward, "episode": self.worst_episode},
            "sharpe": None if self.sharpe is None else self.sharpe.to_json(),
            "win_rate": None if self.win_rate is None else self.win_rate.to_json(),
        }


def risk_of(returns: Sequence[float], alpha: float = DEFAULT_ALPHA, wins: Sequence[float] | None = None) -> Risk:
    """All figures of the returns; `wins` has a number from 0 to 1 per episode, or NaN for no value."""
    sample, drawn = np.asarray(returns, dtype=np.float64), resampled(returns)
    won = [] if wins is None else [win for win in wins if not math.isnan(win)]
    quantiles = np.quantile(sample, QUANTILES)
    bounds = np.percentile(np.quantile(drawn, QUANTILES, axis=-1), [2.5, 97.5], axis=-1).T
    return Risk(
        alpha=check_alpha(alpha),
        mean=_estimate(sample, drawn, lambda values: values.mean(axis=-1)),
        cvar=_estimate(sample, drawn, lambda values: cvar(values, alpha)),
        quantiles={
            share: Estimate(float(value), float(low), float(high))
            for share, value, (low, high) in zip(QUANTILES, quantiles, bounds, strict=True)
        },
        worst_reward=float(sample.min()),
        worst_episode=int(sample.argmin()),
        sharpe=None if np.isnan(sharpe(sample)) else _estimate(sample, drawn, sharpe),
        win_rate=estimated_mean(won) if won else None,
    )


def estimated_mean(values: Sequence[float]) -> Estimate:
    """The mean with its interval."""
    return _estimate(np.asarray(values, dtype=np.float64), resampled(values), lambda sample: sample.mean(axis=-1))


def _estimate(sample: Floats, drawn: Floats, figure: Callable[[Floats], Any]) -> Estimate:
    # A ratio has no value in a resample of equal returns.
    low, high = np.nanpercentile(figure(drawn), [2.5, 97.5])
    return Estimate(float(figure(sample)), float(low), float(high))


def resampled(values: Sequence[float], resamples: int = RESAMPLES, stratum: int = 0) -> Floats:
    """Bootstrap samples `[resamples, N]`; those of different strata are independent of each other."""
    count = len(values)
    draw = _drawn if resamples * count <= MOST_KEPT else _drawn.__wrapped__
    sample: Floats = np.asarray(values, dtype=np.float64)[draw(count, resamples, stratum)]
    return sample


@lru_cache(maxsize=32)
def _drawn(count: int, resamples: int, stratum: int) -> NDArray[np.int64]:
    drawn = words(0, np.arange(resamples), [stratum], count, Stream.BOOTSTRAP)[:, 0] % np.uint64(count)
    return drawn.astype(np.int64)
