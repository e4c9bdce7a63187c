"""How metrics and progress are written on a display of few characters."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from surefoot.telemetry import names
from surefoot.telemetry.alerts import ALERTS
from surefoot.telemetry.sinks import Metrics

MISSING = "\N{EN DASH}"
RATES = (names.STEPS_PER_SECOND, names.ROLLOUT_STEPS_PER_SECOND, names.LEARN_STEPS_PER_SECOND)
_LEVELS = "▁▂▃▄▅▆▇█"
_LARGEST = 1e290
"""Sums and differences of such values are finite."""
_LABELS = {alert.key: alert.label for alert in ALERTS}


@dataclass(frozen=True)
class Reading:
    """How one metric is displayed; the short label is for narrow columns."""

    name: str
    label: str
    short: str
    spec: str
    style: str = ""
    factor: float = 1.0

    def text(self, metrics: Metrics, missing: str = MISSING) -> str:
        """The value in at most nine characters."""
        if self.name not in metrics:
            return missing
        value = self.factor * metrics[self.name]
        text = format(value, self.spec if abs(value) < 1e3 else ",.0f")
        return text if len(text) <= 9 else f"{value:.2e}"


RETURN = Reading(names.EPISODE_REWARD, "return", "return", "z.2f", "bold green")
LENGTH = Reading(names.EPISODE_LENGTH, "length", "length", "z.1f")
EVAL = Reading(names.EVAL_REWARD, "last eval", "eval", "z.2f", "bold cyan")
LEARNING_RATE = Reading(names.LEARNING_RATE, "learning rate", "lr", ".2e")
KL = Reading(names.APPROX_KL, "KL", "KL", "z.4f")
CLIPPED = Reading(names.CLIP_FRACTION, "clip fraction", "clip", "z.3f")
EXPLAINED = Reading(names.EXPLAINED_VARIANCE, "explained var", "EV", "z.3f")
ENTROPY = Reading(names.ENTROPY_LOSS, "entropy", "entropy", "z.3f", factor=-1.0)
SPEED = Reading(names.STEPS_PER_SECOND, "steps/s", "steps/s", ".0f", "bold")
ROLLOUT = Reading(names.ROLLOUT_STEPS_PER_SECOND, "· rollout", "rollout", ".0f")
LEARN = Reading(names.LEARN_STEPS_PER_SECOND, "· learn", "learn", ".0f")
TABLE = (
    (RETURN, KL, SPEED),
    (LENGTH, CLIPPED, ROLLOUT),
    (EVAL, EXPLAINED, LEARN),
    (LEARNING_RATE, ENTROPY),
)
TRENDS = (RETURN, KL, CLIPPED, EXPLAINED, ENTROPY)
"""Metrics that are also drawn over time, the first one over the whole width."""
LINE = (RETURN, LENGTH, KL, EXPLAINED, ENTROPY)


@dataclass(frozen=True)
class Pace:
    """Progress of a run, and the time left at the speed since this process started."""

    step: int
    total_steps: int
    start_step: int
    elapsed_s: float
    elapsed_before_s: float = 0.0
    """Time that earlier processes of the run took."""

    @property
    def total_s(self) -> float:
        """Time since the run began, without pauses between its processes."""
        return self.elapsed_before_s + self.elapsed_s

    @property
    def percent(self) -> float:
        """Completed steps in percent, at most 100: the last rollout may overshoot."""
        return min(100.0, 100.0 * self.step / max(1, self.total_steps))

    @property
    def eta_s(self) -> float | None:
        """Seconds left; None before the first steps of this process."""
        done, left = self.step - self.start_step, max(0, self.total_steps - self.step)
        return left * self.elapsed_s / done if done > 0 else None


def duration(seconds: float | None, missing: str = MISSING) -> str:
    """As m:ss, h:mm:ss, or days and hours."""
    if seconds is None:
        return missing
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    if hours >= 48:
        return f"{hours // 24}d {hours % 24}h"
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def sparkline(values: Sequence[float], width: int) -> str:
    """Bars from the lowest to the highest finite value; more values than fit are averaged in groups."""
    values = [max(-_LARGEST, min(_LARGEST, value)) for value in values if math.isfinite(value)]
    if not values:
        return MISSING
    count = min(width, len(values))
    edges = [index * len(values) // count for index in range(count + 1)]
    means = [sum(values[begin:end]) / (end - begin) for begin, end in pairwise(edges)]
    low, high = min(means), max(means)
    scale = (len(_LEVELS) - 1) / ((high - low) or 1.0)
    return "".join(_LEVELS[round((mean - low) * scale)] for mean in means)


def raised_alerts(metrics: Metrics) -> list[str]:
    """Labels of the active alerts; alerts from user hooks appear under their metric name."""
    raised = [name for name, value in metrics.items() if name.startswith(names.ALERT_PREFIX) and value > 0]
    return [_LABELS.get(name, name.removeprefix(names.ALERT_PREFIX)) for name in raised]
