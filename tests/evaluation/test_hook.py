"""Evaluation during training: when, and which policy is kept."""

from pathlib import Path

import pytest

from surefoot.core.errors import EnvError
from surefoot.core.records import IterationReport, Learned, Progress, RolloutStats
from surefoot.evaluation.evaluate import Evaluation
from surefoot.evaluation.hook import EvaluateAndKeepBest
from surefoot.telemetry import names
from surefoot.training.checkpoint import read_checkpoint


class Run:
    """A hook that scores what it is told."""

    def __init__(
        self, *scores: float | Exception, every: int, best_file: Path | None, best: float | None = None
    ) -> None:
        self._scores = list(scores)
        self.step = 0
        self.hook = EvaluateAndKeepBest(self._evaluate, lambda: {"step": self.step}, every, 0, best_file, best)

    def _evaluate(self) -> Evaluation:
        score = self._scores.pop(0)
        if isinstance(score, Exception):
            raise score
        return Evaluation((score - 1, score + 1), (3, 5))

    def advance(self, step: int, total: int = 1000) -> dict[str, float]:
        self.step = step
        learned = Learned(*[0.0] * 7, epochs=1, skipped_steps=0, lr=0.0, clip=0.0, entropy_coef=0.0)
        report = IterationReport(Progress(step, total), RolloutStats(0, (), ()), learned, 0.0, 0.0)
        self.hook.after_iteration(report)
        return report.metrics


def test_scores_go_to_the_metrics_when_they_are_due(tmp_path):
    run = Run(5.0, 6.0, every=100, best_file=None)
    assert [bool(run.advance(step)) for step in (40, 80, 120, 160, 199)] == [False, False, True, False, False]
    assert run.advance(210) == {names.EVAL_REWARD: 6.0, names.EVAL_REWARD_STD: 1.0, names.EVAL_LENGTH: 4.0}
    assert run.hook.last == Evaluation((5.0, 7.0), (3, 5))


def test_the_end_is_always_evaluated():
    run = Run(5.0, every=0, best_file=None)
    assert not run.advance(999)
    assert run.advance(1000)


def test_only_a_better_policy_replaces_the_best(tmp_path):
    best = tmp_path / "best.safetensors"
    run = Run(5.0, 4.0, 5.0, 6.0, every=100, best_file=best)
    kept = []
    for step in (100, 200, 300, 400):
        run.advance(step)
        kept.append(read_checkpoint(best)["step"])
    assert kept == [100, 100, 100, 400]
    assert run.hook.best == 6.0


def test_a_score_from_before_has_to_be_beaten(tmp_path):
    best = tmp_path / "best.safetensors"
    run = Run(5.0, 8.0, every=100, best_file=best, best=7.0)
    run.advance(100)
    assert not best.exists()
    run.advance(200)
    assert read_checkpoint(best) == {"step": 200}


def test_a_best_that_could_not_be_saved_is_tried_again(tmp_path, caplog):
    best = tmp_path / "later" / "best.safetensors"
    run = Run(5.0, 4.0, every=100, best_file=best)
    run.advance(100)
    assert "best policy not saved: No such file or directory" in caplog.text
    assert run.hook.best is None
    best.parent.mkdir()
    run.advance(200)
    assert read_checkpoint(best) == {"step": 200}, "4 is the best there is a file of"


def test_an_env_that_cannot_be_evaluated_costs_a_warning(caplog):
    run = Run(EnvError("it never ends"), 3.0, every=100, best_file=None)
    assert run.advance(100) == {}
    assert "evaluation failed: it never ends" in caplog.text
    assert run.advance(200)[names.EVAL_REWARD] == 3.0


def test_other_errors_are_not_hidden():
    with pytest.raises(ZeroDivisionError):
        Run(ZeroDivisionError(), every=100, best_file=None).advance(100)
