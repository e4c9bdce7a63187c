"""Key numbers of a run, and whether it has finished."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from surefoot.inspection.report.reported_run import AlertSpan, ReportedRun
from surefoot.inspection.report.run_groups import flat
from surefoot.inspection.run_record import lock_holder
from surefoot.telemetry import names

Status = Literal["finished", "failed", "running", "stopped"]


class BestEvaluation(NamedTuple):
    """The best evaluation: its mean reward, the std over episodes if recorded, and its step."""

    reward: float
    std: float | None
    step: int


@dataclass(frozen=True)
class RunSummary:
    """A row of the summary; None for values that were not recorded."""

    steps: int
    planned: int | None
    status: Status
    why: str
    """The error that ended the run, or why a hook stopped it; empty for all others."""
    final_return: float | None
    best: BestEvaluation | None
    seconds: float | None
    alerts: list[AlertSpan]

    @property
    def active_alerts(self) -> list[str]:
        """Labels of the alerts that are active in the last record."""
        return [span.label for span in self.alerts if span.end == self.steps]

    @property
    def steps_per_second(self) -> float | None:
        """Steps per second over the whole run, including evaluation and checkpoints."""
        return self.steps / self.seconds if self.seconds else None


def summarize(run: ReportedRun) -> RunSummary:
    """Compute the numbers from the records."""
    steps = int(run.records[-1]["step"])
    planned = _planned_steps(run)
    returns = run.series(names.EPISODE_REWARD)
    status, why = _status(run, steps, planned)
    return RunSummary(
        steps=steps,
        planned=planned,
        status=status,
        why=why,
        final_return=returns[-1][1] if returns else None,
        best=_best_evaluation(run),
        seconds=run.seconds[-1] if run.seconds else None,
        alerts=run.alerts,
    )


def _status(run: ReportedRun, steps: int, planned: int | None) -> tuple[Status, str]:
    """How the run ended, and why if the log of its last process says so."""
    is_running = lock_holder(run.path) is not None
    log = run.log
    if log.error is not None and not is_running:
        return "failed", log.error
    if planned is not None and steps >= planned:
        return "finished", ""
    if is_running:
        return "running", ""
    return ("stopped", "") if log.stop_reason is None else ("finished", log.stop_reason)


def _planned_steps(run: ReportedRun) -> int | None:
    try:
        return int(flat(run.config).get("train.steps", ""))
    except ValueError:
        return None


def _best_evaluation(run: ReportedRun) -> BestEvaluation | None:
    """The evaluation whose policy was kept as the best one: by train.best_metric, or by the mean reward."""
    if not run.evaluated:
        return None
    wanted = flat(run.config).get("train.best_metric", "")
    metric, sign = names.EVAL_PREFIX + wanted.removeprefix("-"), -1 if wanted.startswith("-") else 1
    if not any(metric in one.figures for one in run.evaluated):
        metric, sign = names.EVAL_REWARD, 1
    best = max((one for one in run.evaluated if metric in one.figures), key=lambda one: sign * one.figures[metric])
    return BestEvaluation(best.figures[names.EVAL_REWARD], best.figures.get(names.EVAL_REWARD_STD), best.step)
