"""Metrics of a user's environment reach metrics.jsonl, evaluation and the choice of the best policy."""

import json
from pathlib import Path

import pytest

from surefoot.training.checkpoint import read_checkpoint
from tests.cli.processes import surefoot
from tests.cli.runs import column
from tests.seams.runs import bring, train_from_flags, train_from_yaml

EVALUATED = ("--train.eval_episodes", 3, "--train.eval_every", 32)


@pytest.mark.parametrize("engine", ["local", "processes", "native"])
def test_the_best_policy_is_chosen_by_the_metric(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    bring(tmp_path, ["corridor"])
    for train, metric in ((train_from_yaml, "is_success"), (train_from_flags, "-reward_effort")):
        run, name = Path(metric.replace("-", "least_")), metric.removeprefix("-")
        chosen = () if metric == "is_success" else ("--train.best_metric", metric)  # the page's own, or another
        out = train("corridor", run, "--rollout.engine", engine, *EVALUATED, *chosen).out
        sign = -1 if metric.startswith("-") else 1
        scores = [sign * value for value in column(run, f"eval/{name}")]
        kept = read_checkpoint(run / "best.safetensors")
        assert (kept["best_metric"], kept["best_score"]) == (metric, max(scores))
        assert kept["progress"]["step"] == 32 * (1 + scores.index(max(scores)))
        assert f"{name} {column(run, f'eval/{name}')[-1]:.4g}" in out
    result = json.loads(surefoot("evaluate", run, "--episodes", 4, "--json").succeeded().out)
    assert [len(found["values"]) for found in result["metrics"].values()] == [4, 4, 4]
    assert list(result["metrics"]) == ["is_success", "reward_effort", "position"]
