"""Alerts with hysteresis: raised by a persistent condition, cleared only once it has been over for a while."""

import math
import statistics
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from surefoot.settings.config import Config
from surefoot.telemetry.alerts import ALERTS, Alert
from surefoot.telemetry.sinks import Metrics

_FEWEST = 3
"""Fewest readings for which a median is robust to an outlier."""


@dataclass(frozen=True)
class Change:
    """An alert that was just raised or cleared, with the medians of the readings behind it."""

    alert: Alert
    is_raised: bool
    values: dict[str, float]


class AlertWatch:
    """Watches all alerts of a run; `stride` is the number of iterations between two observations."""

    def __init__(self, config: Config, stride: int = 1, alerts: Sequence[Alert] = ALERTS) -> None:
        self._states = [_State(alert, config, stride) for alert in alerts]

    def recall(self, first: Metrics) -> None:
        """Compare with the first record of the run, which an earlier process has written."""
        for state in self._states:
            state.recall(first)

    def observe(self, metrics: Metrics) -> list[Change]:
        """Add an iteration; returns the alerts that it raised or cleared."""
        finite = {name: value for name, value in metrics.items() if math.isfinite(value)}
        return [Change(state.alert, state.is_raised, state.evidence) for state in self._states if state.observe(finite)]

    @property
    def raised(self) -> list[Alert]:
        """The active alerts."""
        return [state.alert for state in self._states if state.is_raised]


def shown(alert: Alert, metrics: Metrics) -> dict[str, float]:
    """The metrics of an alert that were recorded."""
    return {name: metrics[name] for name in alert.evidence if name in metrics}


class _State:
    """State of one alert."""

    def __init__(self, alert: Alert, config: Config, stride: int) -> None:
        self.alert, self.is_raised = alert, False
        self._gauge, self._limits = alert.gauge(), alert.limits(config)
        self._levels: deque[float] = deque(maxlen=_strided(alert.window, stride))
        self._readings: deque[Metrics] = deque(maxlen=self._levels.maxlen)
        self.evidence: dict[str, float] = {}
        self._calm_needed, self._calm, self._since_bad = _strided(alert.calm, stride), 0, 0

    def recall(self, first: Metrics) -> None:
        """Show the gauge a record that does not count: some measure relative to the first one."""
        self._gauge(first)

    def observe(self, metrics: Metrics) -> bool:
        """Whether this reading raised or cleared the alert; a missing reading changes nothing."""
        level = self._gauge(metrics)
        if level is None:
            return False
        self._levels.append(level)
        self._readings.append(metrics)
        self._since_bad = 0 if self._limits.is_bad(level) else self._since_bad + 1
        self._calm = self._calm + 1 if self._limits.is_good(level) else 0
        if self.is_raised:
            return self._change(self._calm >= self._calm_needed)
        is_full = len(self._levels) == self._levels.maxlen
        is_open = is_full and self._since_bad < len(self._levels)  # else no level is bad, and neither is the median
        return self._change(is_open and self._limits.is_bad(statistics.median(self._levels)))

    def _change(self, is_due: bool) -> bool:
        if is_due:
            self.is_raised = not self.is_raised
            self._calm = 0
            self.evidence = _medians(shown(self.alert, reading) for reading in self._readings)
            self._levels.clear()
            self._readings.clear()
        return is_due


def _strided(iterations: int, stride: int) -> int:
    """A number of iterations as a number of readings that are `stride` iterations apart."""
    return max(math.ceil(iterations / stride), min(iterations, _FEWEST))


def _medians(readings: Iterable[Metrics]) -> dict[str, float]:
    columns: dict[str, list[float]] = {}
    for reading in readings:
        for name, value in reading.items():
            columns.setdefault(name, []).append(value)
    return {name: statistics.median(values) for name, values in columns.items()}
