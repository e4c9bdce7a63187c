"""Gauges turn the metrics of an iteration into the level that an alert watches; None means no reading."""

import math
import statistics
from collections import deque
from collections.abc import Callable

from surefoot.telemetry import names
from surefoot.telemetry.sinks import Metrics

Gauge = Callable[[Metrics], float | None]

HIGH_KL = 0.05
SMALL_ERROR = 0.1
FLOWING = 1e-3
THROUGHPUT_WINDOW, THROUGHPUT_S = 20, 30.0
MOST_WAIT = 0.95


def plain(metric: str) -> Gauge:
    """The metric itself."""
    return lambda metrics: metrics.get(metric)


def imbalance(metrics: Metrics) -> float | None:
    """How many times larger the gradient of one twin critic is than that of the other."""
    ratio = metrics.get(names.CRITICS_GRAD_RATIO)
    return None if ratio is None else max(ratio, 1 / max(ratio, 1e-12))


def actor_share(metrics: Metrics) -> float | None:
    """The share of the actor in the norm of the gradient; 1 if its own norm is too small to learn by."""
    if names.ACTOR_GRAD_NORM not in metrics or names.GRAD_NORM not in metrics:
        return None
    norm = metrics[names.ACTOR_GRAD_NORM]
    return 1.0 if norm < FLOWING else norm / max(metrics[names.GRAD_NORM], norm)


def usual_clip_fraction(clip: float) -> float:
    """The fraction of samples that a KL divergence of 0.05 moves out of the clip range: 53% at 0.2, 75% at 0.1.

    At a KL divergence of k, log-ratios have a std of about sqrt(2 k); a narrow range clips many in a healthy run.
    """
    return math.erfc(clip / (2 * math.sqrt(HIGH_KL)))


def clipped(metrics: Metrics) -> float | None:
    """The clip fraction, relative to that of a high KL divergence at the update's clip range."""
    if names.CLIP_FRACTION not in metrics or names.CLIP_RANGE not in metrics:
        return None
    usual = usual_clip_fraction(metrics[names.CLIP_RANGE])
    return metrics[names.CLIP_FRACTION] / usual if usual > 0 else None  # a clip range of 20 clips nothing


def explained(metrics: Metrics) -> float | None:
    """Explained variance; 1 if the value error is below a tenth of the returns.

    If returns hardly vary (a solved task), there is no variance to explain, and a tiny error looks large.
    """
    if metrics.get(names.VALUE_ERROR, 1.0) < SMALL_ERROR:
        return 1.0
    return metrics.get(names.EXPLAINED_VARIANCE)


def noise_share(metrics: Metrics) -> float | None:
    """What exploration noise costs, relative to the objective (1 - beta) mean + beta CVaR."""
    if not {names.RISK_NOISE_COST, names.RISK_MEAN, names.RISK_CVAR, names.RISK_BETA} <= metrics.keys():
        return None
    beta = metrics[names.RISK_BETA]
    worth = abs((1 - beta) * metrics[names.RISK_MEAN] + beta * metrics[names.RISK_CVAR])
    return metrics[names.RISK_NOISE_COST] / worth if worth > 0 and beta > 0 else None


class Exploration:
    """Randomness of the policy relative to the first iteration.

    The entropy of discrete actions is 0 for a deterministic policy, so its ratio to the initial entropy is meaningful.
    Differential entropy has no such zero and its sign is arbitrary: for continuous actions the ratio of stds is used.
    """

    def __init__(self) -> None:
        self._first: float | None = None

    def __call__(self, metrics: Metrics) -> float | None:
        """The ratio to the first iteration."""
        if names.STD in metrics:
            now = metrics[names.STD]
        elif names.ENTROPY_LOSS in metrics:
            now = -metrics[names.ENTROPY_LOSS]
        else:
            return None
        if self._first is None:
            self._first = now
        return now / self._first if self._first > 0 else None


class Throughput:
    """The running median of steps per second, relative to its best value so far.

    The window covers several iterations and seconds, so a short pause is not a drop. Time spent waiting for a CPU is
    excluded, so other processes on the machine do not cause a drop either.
    """

    def __init__(self) -> None:
        self._window: deque[tuple[float, float]] = deque()
        self._seconds = self._best = 0.0

    def __call__(self, metrics: Metrics) -> float | None:
        """The ratio to the best median; None until the window is full."""
        if names.STEPS_PER_SECOND not in metrics:
            return None
        took_s = metrics.get(names.ROLLOUT_SECONDS, 0.0) + metrics.get(names.LEARN_SECONDS, 0.0)
        window = self._window
        working_share = 1 - min(metrics.get(names.CPU_WAIT, 0.0), MOST_WAIT)
        window.append((metrics[names.STEPS_PER_SECOND] / working_share, took_s))
        self._seconds += took_s
        while len(window) > THROUGHPUT_WINDOW and self._seconds - window[0][1] >= THROUGHPUT_S:
            self._seconds -= window.popleft()[1]
        if len(window) < THROUGHPUT_WINDOW or self._seconds < THROUGHPUT_S:
            return None
        median = statistics.median(rate for rate, _ in window)
        self._best = max(self._best, median)
        return median / self._best if self._best > 0 else None
