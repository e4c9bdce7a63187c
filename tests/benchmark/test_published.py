"""What `benchmarks.published` runs, and what it writes."""

import json
import sys
from pathlib import Path

import pytest

from benchmarks import published
from benchmarks.kept_runs import KeptRuns
from surefoot.presets import load_preset
from surefoot.settings.layers import build_config


@pytest.mark.parametrize("task", published.TASKS, ids=lambda task: task.name)
def test_published_results_are_those_of_the_preset(task) -> None:
    assert task.steps == build_config(load_preset(task.name)).train.steps
    file = published.RESULTS / task.file
    if file.exists():
        assert len([run for run in KeptRuns(file, task).runs if run["side"] == "surefoot"]) == task.seeds


@pytest.mark.parametrize("task", [task for task in published.TASKS if task.has_peer], ids=lambda task: task.name)
def test_stable_baselines3_gets_the_values_of_the_preset(task) -> None:
    config = build_config(load_preset(task.name))
    assert config.normalize.obs  # as VecNormalize does
    assert config.normalize.reward
    assert [(name, part.kind) for name, part in config.schedules.items()] in ([], [("lr", "linear")])
    settings, rate = published.sb3_settings(config), config.optimizer.lr
    assert settings["n_steps"] == config.rollout.num_steps
    assert settings["policy_kwargs"]["log_std_init"] == getattr(config.policy.distribution, "log_std", 0.0)
    given = settings["learning_rate"]
    assert (given(1.0), given(0.5)) == (rate, rate / 2) if config.schedules else given == rate


def test_a_busy_machine_is_not_timed_by_the_wall_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real run: one thread, CPU seconds, and nothing of Stable-Baselines3."""
    monkeypatch.setattr(published, "EPISODES", 1)
    monkeypatch.setattr(published, "TASKS", [published.Task("CartPole-v1", 1, 475, "500", 1024)])
    monkeypatch.setattr(sys, "argv", ["published", "--cpu", "--output", str(tmp_path)])
    published.main()
    (run,) = json.loads((tmp_path / "CartPole-v1.json").read_text())["runs"]
    assert run["cpu_s"] > 0
    assert "train_s" not in run
    row = (tmp_path / "README.md").read_text().splitlines()[-1]
    assert row.endswith(f"| 475: missed | 500 | {run['cpu_s']:.0f} CPU | - |")
