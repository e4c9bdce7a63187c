"""What an alert looks at: a gauge turns the metrics of each iteration into one level; None says nothing."""

import math
import statistics
from collections import deque
from collections.abc import Callable

from surefoot.telemetry import names
from surefoot.telemetry.sinks import Metrics

Gauge = Callable[[Metrics], float | None]

HIGH_KL = 0.05
SMALL_ERROR = 0.1
THROUGHPUT_WINDOW, THROUGHPUT_S = 20, 30.0
MOST_WAIT = 0.95


def plain(metric: str) -> Gauge:
    """The metric itself."""
    return lambda metrics: metrics.get(metric)


def usual_clip_fraction(clip: float) -> float:
    """The share of samples that a KL of 0.05 moves out of the clip range: 53 % at 0.2, 75 % at 0.1.

    A KL of k makes log-ratios spread with a std of about sqrt(2 k); a narrow range clips many of them in a healthy run.
    """
    return math.erfc(clip / (2 * math.sqrt(HIGH_KL)))


def clipped(metrics: Metrics) -> float | None:
    """The clip fraction, relative to what a high KL would clip in the clip range of that update."""
    if names.CLIP_FRACTION not in metrics or names.CLIP_RANGE not in metrics:
        return None
    return metrics[names.CLIP_FRACTION] / usual_clip_fraction(metrics[names.CLIP_RANGE])


def explained(metrics: Metrics) -> float | None:
    """Explained variance; 1 where the values are right to a tenth of the returns.

    Where returns hardly differ (a solved task), there is no variance to explain, and a small error looks terrible.
    """
    if metrics.get(names.VALUE_ERROR, 1.0) < SMALL_ERROR:
        return 1.0
    return metrics.get(names.EXPLAINED_VARIANCE)


class Exploration:
    """How much of the first iteration's randomness is left.

    Entropy of discrete actions is 0 when one is certain, so its share of the start says how much is left. Differential
    entropy has no such zero, and its sign means nothing: for continuous actions the share is that of the std.
    """

    def __init__(self) -> None:
        self._first: float | None = None

    def __call__(self, metrics: Metrics) -> float | None:
        """The share that is left."""
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
    """The running median of steps per second, relative to the best there has been.

    The window spans iterations and seconds: a moment is no drop. Nor is a machine that others keep busy: time spent
    waiting for a CPU does not count.
    """

    def __init__(self) -> None:
        self._window: deque[tuple[float, float]] = deque()
        self._seconds = self._best = 0.0

    def __call__(self, metrics: Metrics) -> float | None:
        """The share that is left; None until the window is full."""
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
        return median / self._best
