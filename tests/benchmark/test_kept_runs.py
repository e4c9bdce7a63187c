"""Comparisons that are made in parts."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks import learning_alike
from benchmarks.kept_runs import KeptRuns
from benchmarks.learning_alike import COMPARISONS, Task, compare, judge, table
from surefoot.errors import ConfigError
from surefoot.presets import preset_names


@dataclass(frozen=True)
class Small:
    name: str
    steps: int
    settings: tuple[str, ...] = ()


def test_what_is_there_is_not_run_again(tmp_path: Path) -> None:
    file = tmp_path / "results" / "one.json"
    kept = KeptRuns(file, Small("one", 10))
    kept.add({"side": "a", "seed": 0})
    again = KeptRuns(file, Small("one", 10))
    assert again.has(side="a", seed=0)
    assert not again.has(side="b", seed=0)
    again.write({"overlap": True})
    assert json.loads(file.read_text()) == {
        "overlap": True,
        "task": {"name": "one", "steps": 10},
        "runs": [{"side": "a", "seed": 0}],
    }


def test_runs_of_another_definition_are_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "one.json"
    KeptRuns(file, Small("one", 10)).add({"seed": 0})
    with pytest.raises(ConfigError, match="start over with --again"):
        KeptRuns(file, Small("one", 11))
    with pytest.raises(ConfigError):
        KeptRuns(file, Small("one", 10, ("--x", "1")))
    assert json.loads(file.read_text())["runs"] == [{"seed": 0}]
    assert KeptRuns(file, Small("one", 11), again=True).runs == []


@pytest.mark.parametrize("comparison", COMPARISONS.values(), ids=COMPARISONS)
def test_published_results_belong_to_the_tasks(comparison) -> None:
    """A call would continue with them, not refuse them."""
    for task in comparison.tasks:
        assert (task.target or task.name) in preset_names() or ":" in task.target
        file = learning_alike.RESULTS / comparison.folder / f"{task.name}.json"
        if file.exists():
            runs = KeptRuns(file, task).runs
            assert len(runs) >= len(comparison.sides) * comparison.seeds
            assert len(runs) % len(comparison.sides) == 0, "as many seeds on every side"


def test_the_verdict_of_a_task() -> None:
    comparison, task = COMPARISONS["learner"], Task("t", 10, untrained=5)
    runs = [
        {"learner": side, "seed": seed, "mean_reward": score + seed, "curve": [[10, 1.0, 2.0]]}
        for side, score in (("native", 10), ("torch", 20))
        for seed in range(3)
    ]
    found = judge(comparison, task, runs)
    assert found["means"] == {"native": 11, "torch": 21}
    assert (found["overlap"], found["learned"]) == (False, True)
    assert found["seconds"] == {"native": 2.0, "torch": 2.0}
    assert judge(comparison, task, runs[:3])["overlap"] is None


def test_a_comparison_continues_where_it_was_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Real runs of both sides, one of which is already in the file."""
    comparison, task = COMPARISONS["engine"], Task("CartPole-v1", 256, 60)
    monkeypatch.setattr(learning_alike, "EPISODES", 1)
    file = tmp_path / "CartPole-v1.json"
    kept = {"engine": "local", "seed": 0, "mean_reward": 500.0, "curve": [[256, 20.0, 1.0]]}
    KeptRuns(file, task).add(kept)
    compare(comparison, task, 1, tmp_path, again=False)
    saved = json.loads(file.read_text())
    assert [run["engine"] for run in saved["runs"]] == ["local", "native"]
    assert saved["runs"][0] == kept
    assert "| CartPole-v1 | 256 | 1 |" in table(comparison, tmp_path)


def test_a_name_that_no_task_has(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["learning_alike", "CartPole-v2"])
    with pytest.raises(SystemExit):
        learning_alike.main()
    assert "unknown task CartPole-v2" in capsys.readouterr().err
