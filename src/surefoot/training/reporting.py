"""From an iteration's records to metrics, for the sinks."""

import time
from collections.abc import Callable

from surefoot.core.records import IterationReport
from surefoot.telemetry import names
from surefoot.telemetry.sinks import Sink


def metrics_of(report: IterationReport, elapsed_s: float) -> dict[str, float]:
    """Every number of an iteration under the name dashboards know it by."""
    stats, learned = report.stats, report.learned
    metrics = {
        names.TOTAL_STEPS: float(report.progress.step),
        names.ITERATION: float(report.progress.iteration),
        names.ELAPSED: elapsed_s,
        names.STEPS_PER_SECOND: stats.num_steps / (report.rollout_s + report.learn_s),
        names.ROLLOUT_STEPS_PER_SECOND: stats.num_steps / report.rollout_s,
        names.LEARN_STEPS_PER_SECOND: stats.num_steps / report.learn_s,
        names.ROLLOUT_SECONDS: report.rollout_s,
        names.LEARN_SECONDS: report.learn_s,
        names.EPISODES: float(len(stats.finished)),
        names.OBS_OUT_OF_BOUNDS: float(stats.obs_out_of_bounds),
        names.WORKER_RESTARTS: float(stats.worker_restarts),
        names.APPROX_KL: learned.approx_kl,
        names.CLIP_FRACTION: learned.clip_fraction,
        names.CLIP_RANGE: learned.clip,
        names.EXPLAINED_VARIANCE: learned.explained_variance,
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
        metrics[names.EPISODE_REWARD] = sum(episode.total_reward for episode in stats.recent) / count
        metrics[names.EPISODE_LENGTH] = sum(episode.length for episode in stats.recent) / count
    return metrics | report.metrics


class Report:
    """Writes the metrics of every n-th iteration, and of any that carries something from another hook."""

    def __init__(self, sink: Sink, every: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._sink, self._every, self._clock = sink, every, clock
        self._began = clock()

    def after_iteration(self, report: IterationReport) -> None:
        """Write a record if it is time."""
        if report.progress.iteration % self._every == 0 or report.metrics or report.progress.is_done:
            self._sink.write(report.progress.step, metrics_of(report, self._clock() - self._began))
