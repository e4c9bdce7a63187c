"""Evaluation during training: when, and which policy is kept."""

import math
from pathlib import Path

import pytest

from surefoot.core.errors import ConfigError, EnvError
from surefoot.core.records import IterationReport, Learned, Progress, RolloutStats
from surefoot.evaluation.best_metric import check_best_metric
from surefoot.evaluation.evaluate import Evaluation
from surefoot.evaluation.hook import EvaluateAndKeepBest
from surefoot.telemetry import names
from surefoot.training.checkpoint import read_checkpoint


class Run:
    """A hook that scores what it is told."""

    def __init__(
        self,
        *scores: float | Exception,
        every: int,
        best_file: Path | None,
        best: float | None = None,
        best_metric: str = "mean_reward",
    ) -> None:
        self._scores = list(scores)
        self.step = 0
        self.metrics: dict[str, tuple[float, ...]] = {}
        self.hook = EvaluateAndKeepBest(
            self._evaluate, lambda: {"step": self.step}, every, 0, best_file, best, best_metric
        )

    def _evaluate(self) -> Evaluation:
        score = self._scores.pop(0)
        if isinstance(score, Exception):
            raise score
        return Evaluation((score - 1, score + 1), (3, 5), self.metrics)

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


@pytest.mark.parametrize(("best_metric", "kept"), [("distance", [100, 200, 200]), ("-distance", [100, 100, 300])])
def test_a_metric_decides_which_policy_is_the_best(tmp_path, best_metric, kept):
    best, found = tmp_path / "best.safetensors", []
    run = Run(1.0, 1.0, 1.0, every=100, best_file=best, best_metric=best_metric)
    for step, distance in ((100, 5.0), (200, 7.0), (300, 3.0)):
        run.metrics = {"distance": (distance, math.nan, distance + 2)}
        assert run.advance(step)["eval/distance"] == distance + 1
        found.append(read_checkpoint(best)["step"])
    assert found == kept
    assert run.hook.best_state == {"best_score": {"distance": 8.0, "-distance": -4.0}[best_metric]} | {
        "best_metric": best_metric
    }


def test_an_evaluation_without_a_value_replaces_nothing(tmp_path, caplog):
    run = Run(1.0, every=100, best_file=tmp_path / "best.safetensors", best_metric="distance")
    run.metrics = {"distance": (math.nan, math.nan)}
    assert "eval/distance" not in run.advance(100)
    assert run.hook.best is None
    assert not (tmp_path / "best.safetensors").exists()
    assert "no evaluated episode has a value for 'distance'" in caplog.text


@pytest.mark.parametrize("fine", ["mean_reward", "distance", "-distance"])
def test_known_scores(fine):
    check_best_metric(fine, ["distance", "won"])


@pytest.mark.parametrize("wrong", ["distanse", "-", "", "--won"])
def test_an_unknown_score_is_refused_with_the_known_ones(wrong):
    with pytest.raises(ConfigError, match=r"train\.best_metric.*known: mean_reward, distance, won; prefix it with '-'"):
        check_best_metric(wrong, ["distance", "won"])
