"""The score of a run: its last or its best evaluation."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from surefoot.errors import ConfigError, RunDirectoryError
from surefoot.inspection.report.reported_run import ReportedRun
from surefoot.settings.registry import nearest
from surefoot.telemetry import names

Which = Literal["final", "best"]


@dataclass(frozen=True)
class Measure:
    """Which evaluation counts, and which of its metrics: `-name` where lower is better."""

    metric: str = "mean_reward"
    which: Which = "final"

    @property
    def text(self) -> str:
        """In words."""
        return f"{self.metric.replace('_', ' ')} of the {'last' if self.which == 'final' else 'best'} evaluation"

    def of(self, run: ReportedRun) -> float | None:
        """The score of a run, higher is better; None if no evaluation has the metric."""
        sign, name = (-1, self.metric[1:]) if self.metric.startswith("-") else (1, self.metric)
        key = names.EVAL_PREFIX + name
        found = [sign * one.figures[key] for one in run.evaluated if key in one.figures]
        return (found[-1] if self.which == "final" else max(found)) if found else None


def scores_of(runs: Sequence[ReportedRun], measure: Measure) -> list[float]:
    """The score of each run, or one error about all runs without a score."""
    found = [measure.of(run) for run in runs]
    missing = [run for run, score in zip(runs, found, strict=True) if score is None]
    if missing:
        raise _error(missing, measure)
    return [score for score in found if score is not None]


def _error(missing: Sequence[ReportedRun], measure: Measure) -> Exception:
    evaluated = [run for run in missing if run.evaluated]
    if evaluated:
        prefix = len(names.EVAL_PREFIX)
        known = list(dict.fromkeys(name[prefix:] for one in evaluated[0].evaluated for name in one.figures))
        hint = nearest(measure.metric, known)
        return ConfigError(
            f"--metric: the evaluations of {evaluated[0].path} have no '{measure.metric}'{hint} ({', '.join(known)})"
        )
    named = ", ".join(str(run.path) for run in missing)
    return RunDirectoryError(
        f"no evaluation was recorded in {named}; leave out such runs, or train with train.eval_episodes above 0"
        " ('surefoot resume RUN --steps N --train.eval_episodes 20' continues a run with evaluations)"
    )
