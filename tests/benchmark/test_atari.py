"""The results of a run of Pong, from a run that is as short as can be."""

import json
import sys

import pytest

from benchmarks import atari
from surefoot.api import PPO

TINY = {"num_envs": 2, "num_steps": 16, "batch_size": 32, "epochs": 1, "eval_episodes": 0, "max_episode_steps": 6}


def test_one_command_writes_numbers_curve_and_page(tmp_path, monkeypatch, capsys):
    run, output = tmp_path / "run", tmp_path / "results"
    PPO(atari.TASK, **TINY).learn(32, run_dir=run)
    monkeypatch.setattr(sys, "argv", ["atari", "--run", str(run), "--output", str(output)])
    atari.main()
    found = json.loads((output / "Pong.json").read_text())
    assert (found["task"], len(found["rewards"])) == ("envpool:Pong-v5", 20)
    assert found["steps"] >= 32
    assert found["config"]["env"]["eval_kwargs"] == {"reward_clip": False}
    assert "must reach 18: missed" in (output / "README.md").read_text()
    assert (output / "Pong.png").stat().st_size > 1000
    assert "envpool:Pong-v5: " in capsys.readouterr().out


def test_the_clock_of_a_resumed_run_is_added_up():
    clock = [10.0, 20.0, 5.0, 6.0]
    records = [{"step": n, "time/time_elapsed": s, "rollout/ep_rew_mean": -21.0} for n, s in enumerate(clock)]
    assert [point[2] for point in atari._curve(records)] == [10.0, 20.0, 25.0, 26.0]
    with pytest.raises(IndexError):
        atari._curve([])
