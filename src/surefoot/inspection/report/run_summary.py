"""The few numbers that say how a run went, and whether it is over."""

import fcntl
import re
from dataclasses import dataclass
from typing import Literal, NamedTuple

from surefoot.inspection.report.alert_spans import AlertSpan, alert_spans
from surefoot.inspection.report.run_groups import flat
from surefoot.inspection.run_record import RunRecord
from surefoot.telemetry import names

_VERSIONS = re.compile(r"surefoot \S+, torch [^\s:]+")


class BestEvaluation(NamedTuple):
    """The highest mean reward of an evaluation, its std over episodes where it was recorded, and when."""

    reward: float
    std: float | None
    step: int


@dataclass(frozen=True)
class RunSummary:
    """A row of the summary; None where the run recorded nothing."""

    steps: int
    planned: int | None
    status: Literal["finished", "running", "stopped"]
    final_return: float | None
    best: BestEvaluation | None
    seconds: float | None
    alerts: list[AlertSpan]
    versions: str | None

    @property
    def steps_per_second(self) -> float | None:
        """Over the whole run, evaluation and checkpoints included."""
        return self.steps / self.seconds if self.seconds else None


def summarize(run: RunRecord) -> RunSummary:
    """Read the numbers off the records."""
    steps = int(run.records[-1]["step"])
    planned = _planned_steps(run)
    returns = run.series(names.EPISODE_REWARD)
    times = seconds_of_training(run)
    return RunSummary(
        steps=steps,
        planned=planned,
        status=_status(run, steps, planned),
        final_return=returns[-1][1] if returns else None,
        best=_best_evaluation(run),
        seconds=times[-1] if times else None,
        alerts=alert_spans(run),
        versions=_versions(run),
    )


def seconds_of_training(run: RunRecord) -> list[float] | None:
    """For each record the time spent so far. A resumed run counts from 0 again, so its stretches are added up."""
    if not all(names.ELAPSED in record for record in run.records):
        return None
    total, before, times = 0.0, 0.0, []
    for record in run.records:
        now = record[names.ELAPSED]
        total += now - before if now >= before else now
        before = now
        times.append(total)
    return times


def is_running(run: RunRecord) -> bool:
    """Whether a process holds the run's lock; the kernel drops it when that process dies."""
    try:
        with (run.path / "lock").open(encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _status(run: RunRecord, steps: int, planned: int | None) -> Literal["finished", "running", "stopped"]:
    if planned is not None and steps >= planned:
        return "finished"
    return "running" if is_running(run) else "stopped"


def _planned_steps(run: RunRecord) -> int | None:
    try:
        return int(flat(run.config).get("train.steps", ""))
    except ValueError:
        return None


def _best_evaluation(run: RunRecord) -> BestEvaluation | None:
    evaluated = [record for record in run.records if names.EVAL_REWARD in record]
    if not evaluated:
        return None
    best = max(evaluated, key=lambda record: record[names.EVAL_REWARD])
    return BestEvaluation(best[names.EVAL_REWARD], best.get(names.EVAL_REWARD_STD), int(best["step"]))


def _versions(run: RunRecord) -> str | None:
    """As the log's first lines say; the last one counts for a run that was resumed with another version."""
    try:
        log = (run.path / "log.txt").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = _VERSIONS.findall(log)
    return found[-1] if found else None
