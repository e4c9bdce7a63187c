"""Evaluation during training: when, and which policy is kept."""

import json
import math
import resource
import signal
from pathlib import Path
from typing import Any

import pytest

from surefoot.data.records import IterationReport, Learned, Progress, RolloutStats
from surefoot.errors import ConfigError, EnvError
from surefoot.evaluation.evaluation import Evaluation, check_best_metric
from surefoot.evaluation.hook import EvaluateAndKeepBest
from surefoot.settings.config import TrainConfig
from surefoot.telemetry import names
from surefoot.training.checkpoint import read_checkpoint
from surefoot.training.run_directory import RunDirectory


class Run:
    """A hook that scores what it is told."""

    def __init__(
        self,
        *scores: float | Exception | tuple[float, ...],
        every: int,
        folder: Path | None = None,
        **settings: Any,
    ) -> None:
        self._scores = list(scores)
        self.step = 0
        self.metrics: dict[str, tuple[float, ...]] = {}
        train = TrainConfig(eval_every=every, **settings)
        directory = None if folder is None else RunDirectory(folder)
        self.hook = EvaluateAndKeepBest(self._evaluate, self._state, train, 0, directory)

    def _state(self) -> dict[str, Any]:
        return {"step": self.step, **self.hook.evaluation_state}

    def _evaluate(self) -> Evaluation:
        score = self._scores.pop(0)
        if isinstance(score, Exception):
            raise score
        rewards = score if isinstance(score, tuple) else (score - 1, score + 1)
        return Evaluation(rewards, (3, 5), self.metrics)

    def advance(self, step: int, total: int = 1000) -> dict[str, float]:
        self.step = step
        learned = Learned(*[0.0] * 7, epochs=1, skipped_steps=0, lr=0.0, clip=0.0, entropy_coef=0.0)
        report = IterationReport(Progress(step, total), RolloutStats(0, (), ()), learned, 0.0, 0.0)
        self.hook.after_iteration(report)
        return report.metrics


def test_scores_go_to_the_metrics_when_they_are_due(tmp_path):
    run = Run(5.0, 6.0, every=100, cvar_alpha=0.75)
    assert [bool(run.advance(step)) for step in (40, 80, 120, 160, 199)] == [False, False, True, False, False]
    assert run.advance(210) == pytest.approx(
        {names.EVAL_REWARD: 6.0, names.EVAL_REWARD_STD: 1.0, names.EVAL_LENGTH: 4.0}
        | {"eval/cvar": (5 + 0.5 * 7) / 1.5, "eval/worst_reward": 5.0, "eval/sharpe": 6.0}
        | {f"eval/quantile_{share:02d}": 5 + 2 * share / 100 for share in (5, 25, 50, 75, 95)}
    )
    assert run.hook.last == Evaluation((5.0, 7.0), (3, 5))


def test_the_end_is_always_evaluated():
    run = Run(5.0, every=0)
    assert not run.advance(999)
    assert run.advance(1000)


def test_only_a_better_policy_replaces_the_best(tmp_path):
    best = tmp_path / "best.safetensors"
    run = Run(5.0, 4.0, 5.0, 6.0, every=100, folder=tmp_path)
    kept = []
    for step in (100, 200, 300, 400):
        run.advance(step)
        kept.append(read_checkpoint(best)["step"])
    assert kept == [100, 100, 100, 400]
    assert run.hook.best == 6.0


def test_a_score_from_before_has_to_be_beaten(tmp_path):
    best = tmp_path / "best.safetensors"
    Run(7.0, every=100, folder=tmp_path).advance(50, total=50)
    run = Run(5.0, 8.0, every=100, folder=tmp_path)
    run.advance(100)
    assert read_checkpoint(best)["step"] == 50
    run.advance(200)
    assert read_checkpoint(best)["step"] == 200


def test_a_best_that_could_not_be_saved_is_tried_again(tmp_path, caplog):
    best = tmp_path / "later" / "best.safetensors"
    run = Run(5.0, 4.0, every=100, folder=best.parent)
    best.parent.write_text("a file in its place")
    run.advance(100)
    assert "best policy not saved: Not a directory" in caplog.text
    assert "returns of the evaluation at step 100 not saved: " in caplog.text
    assert run.hook.best is None
    best.parent.unlink()
    best.parent.mkdir()
    run.advance(200)
    assert read_checkpoint(best)["step"] == 200, "4 is the best there is a file of"


def test_an_env_that_cannot_be_evaluated_costs_a_warning(caplog):
    run = Run(EnvError("it never ends"), 3.0, every=100)
    assert run.advance(100) == {}
    assert "evaluation failed: it never ends" in caplog.text
    assert run.advance(200)[names.EVAL_REWARD] == 3.0


def test_other_errors_are_not_hidden():
    with pytest.raises(ZeroDivisionError):
        Run(ZeroDivisionError(), every=100).advance(100)


@pytest.mark.parametrize(("best_metric", "kept"), [("distance", [100, 200, 200]), ("-distance", [100, 100, 300])])
def test_a_metric_decides_which_policy_is_the_best(tmp_path, best_metric, kept):
    best, found = tmp_path / "best.safetensors", []
    run = Run(1.0, 1.0, 1.0, every=100, folder=tmp_path, best_metric=best_metric)
    for step, distance in ((100, 5.0), (200, 7.0), (300, 3.0)):
        run.metrics = {"distance": (distance, math.nan, distance + 2)}
        assert run.advance(step)["eval/distance"] == distance + 1
        found.append(read_checkpoint(best)["step"])
    assert found == kept
    assert run.hook.evaluation_state == {"best_score": {"distance": 8.0, "-distance": -4.0}[best_metric]} | {
        "best_metric": best_metric,
        "evaluation_due": False,
    }


def test_an_evaluation_without_a_value_replaces_nothing(tmp_path, caplog):
    run = Run(1.0, every=100, folder=tmp_path, best_metric="distance")
    run.metrics = {"distance": (math.nan, math.nan)}
    assert "eval/distance" not in run.advance(100)
    assert run.hook.best is None
    assert not (tmp_path / "best.safetensors").exists()
    assert "no evaluated episode has a value for 'distance'" in caplog.text


SAFE, RISKY = (4.0, 5.0, 6.0), (0.0, 9.0, 9.0)


@pytest.mark.parametrize(
    ("best_metric", "kept"),
    [("mean_reward", RISKY), ("cvar", SAFE), ("worst_reward", SAFE), ("sharpe", SAFE), ("quantile_95", RISKY)],
)
def test_risk_decides_which_policy_is_the_best(tmp_path, best_metric, kept):
    run = Run(RISKY, SAFE, every=100, folder=tmp_path, best_metric=best_metric, cvar_alpha=0.5)
    for step in (100, 200):
        logged = run.advance(step)[f"eval/{best_metric}"]
        if run.hook.last.rewards == kept:
            assert run.hook.best == logged
    assert read_checkpoint(tmp_path / "best.safetensors")["step"] == (100 if kept is RISKY else 200)


def test_a_cvar_of_another_share_is_not_compared(tmp_path, caplog):
    Run(SAFE, every=100, folder=tmp_path, best_metric="cvar", cvar_alpha=0.5).advance(100)
    assert Run(every=100, folder=tmp_path, best_metric="cvar", cvar_alpha=0.5).hook.best == pytest.approx(13 / 3)
    assert Run(every=100, folder=tmp_path, best_metric="cvar", cvar_alpha=0.6).hook.best is None
    assert "chosen by cvar (alpha 0.5), but train.best_metric is cvar (alpha 0.6) now" in caplog.text


def test_a_choice_by_a_cvar_of_too_few_episodes_is_warned_about(caplog):
    for fine in ({"best_metric": "mean_reward"}, {"best_metric": "cvar", "eval_episodes": 20}):
        Run(every=100, **fine).hook.begin()
    assert caplog.text == ""
    Run(every=100, best_metric="cvar").hook.begin()
    assert caplog.messages == [
        "train.best_metric is cvar, but the CVaR of the worst 5% of 10 episodes is the worst episode; evaluate at least"
        " 20 episodes (train.eval_episodes)"
    ]


def test_returns_of_single_episodes_are_kept(tmp_path):
    run = Run(5.0, 6.0, every=100, folder=tmp_path)
    run.advance(100)
    run.metrics = {"distance": (1.0, 2.0), "win": (1.0, math.nan)}
    run.advance(200)
    lines = (tmp_path / "evaluations.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [
        {"step": 100, "rewards": [4.0, 6.0]},
        {"step": 200, "rewards": [5.0, 7.0], "wins": [1.0, None]},
    ]


def test_returns_are_not_written_through_a_link(tmp_path, caplog):
    """A full disk is an error of the same kind: the evaluation still counts."""
    (tmp_path / "evaluations.jsonl").symlink_to("/dev/full")
    run = Run(5.0, every=100, folder=tmp_path)
    assert run.advance(100)[names.EVAL_REWARD] == 5.0
    assert "returns of the evaluation at step 100 not saved: it is a symbolic link" in caplog.text
    assert read_checkpoint(tmp_path / "best.safetensors")["step"] == 100


def test_a_full_disk_costs_a_warning_and_the_earlier_returns_stay(tmp_path, caplog):
    run = Run(5.0, (6.0, 7.0) * 2000, every=100, folder=tmp_path)
    run.advance(100)
    before = (tmp_path / "evaluations.jsonl").read_text()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, limits[1]))
        run.advance(200)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)
    assert "returns of the evaluation at step 200 not saved: File too large" in caplog.text
    assert (tmp_path / "evaluations.jsonl").read_text() == before


@pytest.mark.parametrize("fine", ["mean_reward", "distance", "-distance", "cvar", "-std_reward", "quantile_05"])
def test_known_scores(fine):
    check_best_metric(fine, ["distance", "won"])


@pytest.mark.parametrize("wrong", ["distanse", "-", "", "--won", "win_rate", "eval/cvar"])
def test_an_unknown_score_is_refused_with_the_known_ones(wrong):
    with pytest.raises(ConfigError, match=r"train\.best_metric.*known: mean_reward, .*, distance, won; prefix it with"):
        check_best_metric(wrong, ["distance", "won"])


def test_a_win_rate_is_known_where_envs_report_it():
    check_best_metric("win_rate", ["success"])
