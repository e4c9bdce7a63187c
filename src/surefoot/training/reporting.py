"""Converts the records of an iteration to metrics for the sinks."""

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence

from surefoot.data.records import Episode, IterationReport
from surefoot.rollout.episode_metrics import mean_of_known
from surefoot.telemetry import names
from surefoot.telemetry.machine import CpuWait, Ram
from surefoot.telemetry.sinks import Sink
from surefoot.telemetry.watch import AlertWatch, Change
from surefoot.training.hooks import Hook
from surefoot.training.run_directory import RunDirectory

_log = logging.getLogger("surefoot")


def metrics_of(report: IterationReport, elapsed_s: float) -> dict[str, float]:
    """The metrics of an iteration by name."""
    stats, learned = report.stats, report.learned
    metrics = {
        names.TOTAL_STEPS: float(report.progress.step),
        names.ITERATION: float(report.progress.iteration),
        names.ELAPSED: elapsed_s,
        names.STEPS_PER_SECOND: _rate(stats.num_steps, report.rollout_s + report.learn_s),
        names.ROLLOUT_STEPS_PER_SECOND: _rate(stats.num_steps, report.rollout_s),
        names.LEARN_STEPS_PER_SECOND: _rate(stats.num_steps, report.learn_s),
        names.ROLLOUT_SECONDS: report.rollout_s,
        names.LEARN_SECONDS: report.learn_s,
        names.EPISODES: float(len(stats.finished)),
        names.OBS_OUT_OF_BOUNDS: float(stats.obs_out_of_bounds),
        names.WORKER_RESTARTS: float(stats.worker_restarts),
        names.APPROX_KL: learned.approx_kl,
        names.CLIP_FRACTION: learned.clip_fraction,
        names.CLIP_RANGE: learned.clip,
        names.EXPLAINED_VARIANCE: learned.explained_variance,
        names.VALUE_ERROR: learned.value_error,
        names.POLICY_LOSS: learned.policy_loss,
        names.VALUE_LOSS: learned.value_loss,
        names.ENTROPY_LOSS: -learned.entropy,
        names.ENTROPY_COEF: learned.entropy_coef,
        names.GRAD_NORM: learned.grad_norm,
        names.LEARNING_RATE: learned.lr,
        names.EPOCHS: float(learned.epochs),
        names.SKIPPED_STEPS: float(learned.skipped_steps),
    }
    if learned.std is not None:
        metrics[names.STD] = learned.std
    if stats.recent:
        count = len(stats.recent)
        metrics[names.EPISODE_REWARD] = sum([episode.total_reward for episode in stats.recent]) / count
        metrics[names.EPISODE_LENGTH] = sum([episode.length for episode in stats.recent]) / count
    return metrics | env_metrics(stats.recent) | learned.metrics | report.metrics


def _rate(steps: int, seconds: float) -> float:
    """Steps per second; 0 if the clock stands still, as libraries that freeze time make it do."""
    return steps / seconds if seconds > 0 else 0.0


def env_metrics(episodes: Sequence[Episode]) -> dict[str, float]:
    """The mean of each env metric over the episodes that have a value."""
    means = {}
    for name in dict.fromkeys([name for episode in episodes for name in episode.metrics]):
        mean = mean_of_known([episode.metrics.get(name, math.nan) for episode in episodes])
        if mean is not None:
            means[names.of_env(name)] = mean
    return means


class LastRecord(Hook):
    """Keeps the record of the last iteration for checkpoints: a kill may come before its line is written.

    Without what the clock says, so that equal runs have equal checkpoints.
    """

    def __init__(self, every: int, metrics: Mapping[str, float] | None = None) -> None:
        super().__init__()
        self._every, self.loaded = every, dict(metrics or {})
        """The record of a checkpoint, until the first iteration."""
        self._report: IterationReport | None = None

    def after_iteration(self, report: IterationReport) -> None:
        """Keep the report itself: later hooks add their metrics to it."""
        self._report, self.loaded = report, {}

    def metrics(self, is_evaluation_due: bool) -> dict[str, float]:
        """The record; empty if the iteration has no line."""
        report = self._report
        if report is None:
            return self.loaded
        if not (is_evaluation_due or _is_written(report, self._every, self._is_last(report))):
            return {}
        found = metrics_of(report, 0.0).items()
        return {name: value for name, value in found if math.isfinite(value) and name not in names.BY_THE_CLOCK}

    def lacks_line(self, directory: RunDirectory, step: int) -> bool:
        """Whether the checkpoint of this step was saved, but not its line in the metrics."""
        is_here = self.loaded.get(names.TOTAL_STEPS) == step and directory.has_saved(step)
        return is_here and not directory.has_record(step)


class Report(Hook):
    """Watches every iteration; writes every n-th record, and records with metrics of other hooks or new alerts."""

    def __init__(self, sink: Sink, every: int, watch: AlertWatch, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._sink, self._every, self._watch, self._clock = sink, every, watch, clock
        self._began, self._cpu_wait, self._ram = clock(), CpuWait(), Ram()

    def after_iteration(self, report: IterationReport) -> None:
        """Write a record if it is due, or if an alert was raised or cleared."""
        metrics = metrics_of(report, self._clock() - self._began) | self._cpu_wait.metrics()
        changes = self._watch.observe(metrics)
        for change in changes:
            _tell(change, report.progress.step)
        metrics |= {change.alert.key: 0.0 for change in changes if not change.is_raised}
        metrics |= {alert.key: 1.0 for alert in self._watch.raised}
        if changes or _is_written(report, self._every, self._is_last(report)):
            self._sink.write(report.progress.step, metrics | self._ram.metrics())


def _is_written(report: IterationReport, every: int, is_last: bool) -> bool:
    return report.progress.iteration % every == 0 or bool(report.metrics) or is_last


def _tell(change: Change, step: int) -> None:
    alert, values = change.alert, ", ".join(f"{name} {value:.4g}" for name, value in change.values.items())
    values += f", median of {alert.window} iterations" if alert.window > 1 and values else ""
    if change.is_raised:
        _log.warning("%s at step %d: %s (%s)", alert.key, step, alert.meaning, values)
    else:
        _log.info("%s cleared at step %d (%s)", alert.key, step, values)
