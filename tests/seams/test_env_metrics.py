"""Metrics of a user's environment reach metrics.jsonl, evaluation and the choice of the best policy."""

import json
from pathlib import Path

import pytest

from surefoot.training.checkpoint import read_checkpoint
from tests.cli.processes import surefoot
from tests.cli.runs import column
from tests.seams.runs import bring, train_from_flags, train_from_yaml

EVALUATED = ("--train.eval_episodes", 2, "--train.eval_every", 64)
STEPS = (64, 128, 160)
"""Where evaluations are due; the last one is at the end of the run."""


@pytest.mark.parametrize("engine", ["local", "processes", "native"])
def test_the_page_keeps_the_policy_with_the_most_successes(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    bring(tmp_path, ["corridor"])
    run = Path("run")
    out = train_from_yaml("corridor", run, "--rollout.engine", engine, *EVALUATED).out
    scores = column(run, "eval/is_success")
    kept = read_checkpoint(run / "best.safetensors")
    assert (kept["best_metric"], kept["best_score"]) == ("is_success", max(scores))
    assert kept["progress"]["step"] == STEPS[scores.index(max(scores))]
    assert f"is_success {scores[-1]:.4g}" in out


def test_a_minus_sign_keeps_the_least_and_evaluate_shows_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    bring(tmp_path, ["corridor"])
    run = Path("run")
    train_from_flags("corridor", run, *EVALUATED, "--train.best_metric", "-reward_effort")
    efforts = column(run, "eval/reward_effort")
    kept = read_checkpoint(run / "best.safetensors")
    assert (kept["best_metric"], kept["best_score"]) == ("-reward_effort", -min(efforts))
    assert kept["progress"]["step"] == STEPS[efforts.index(min(efforts))]
    result = json.loads(surefoot("evaluate", run, "--episodes", 4, "--json").succeeded().out)
    assert [len(found["values"]) for found in result["metrics"].values()] == [4, 4, 4]
    assert list(result["metrics"]) == ["is_success", "reward_effort", "position"]
