"""The run of a seed: the one that it would be alone, also if it is stopped in between."""

import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from surefoot.errors import CheckpointError
from surefoot.seeds.coordinator import run_seed
from surefoot.settings.layers import read_yaml
from tests.cli.runs import records

RUN = {
    "env": {"id": "CartPole-v1"},
    "rollout": {"num_envs": 2, "num_steps": 16, "workers": 1},
    "ppo": {"batch_size": 16, "epochs": 2},
    "policy": {"hidden": [4]},
    "train": {"steps": 128, "seed": 3, "threads": 1, "eval_every": 64, "eval_episodes": 2, "checkpoint_every": 32},
    "log": {"tensorboard": False, "console": "plain"},
}


def arguments(folder: Path) -> dict[str, Any]:
    return {"directory": str(folder), "config": RUN, "command": ["train", "CartPole-v1", "--seeds", "3 "]}


def test_a_seed_without_its_checkpoints_does_not_start_again(tmp_path):
    run_seed(arguments(tmp_path), lambda progress: None)
    before = (tmp_path / "metrics.jsonl").read_bytes()
    shutil.rmtree(tmp_path / "checkpoints")
    with pytest.raises(CheckpointError, match="has no checkpoint to resume from"):
        run_seed(arguments(tmp_path), lambda progress: None)
    assert (tmp_path / "metrics.jsonl").read_bytes() == before


def test_a_seed_that_is_stopped_continues_bit_for_bit(tmp_path, monkeypatch):
    monkeypatch.setattr("surefoot.seeds.coordinator._SAY_EVERY_S", 0.0)
    said: list[dict[str, Any]] = []
    whole = run_seed(arguments(tmp_path / "whole"), said.append)
    assert whole == {"step": 128, "wanted": 128, "reason": ""}
    assert [one["step"] for one in said] == [0, 32, 64, 96, 128, 128]
    assert said[0] == {"step": 0}
    assert said[-1]["score"] is not None
    assert said[-1]["rate"] > 0

    heard: list[int] = []

    def stop(progress: dict[str, Any]) -> None:
        heard.append(progress["step"])
        if heard.count(64) == 1 and heard[-1] == 64:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(SystemExit) as raised:
        run_seed(arguments(tmp_path / "stopped"), stop)
    assert raised.value.code == 143
    assert run_seed(arguments(tmp_path / "stopped"), said.append) == whole
    assert records(tmp_path / "stopped") == records(tmp_path / "whole")
    before = len(said)
    assert run_seed(arguments(tmp_path / "stopped"), said.append) == whole
    assert len(said) == before  # nothing was trained again


def test_its_directory_is_that_of_any_run(tmp_path, capsys):
    run_seed(arguments(tmp_path / "run"), lambda said: None)
    assert read_yaml(tmp_path / "run" / "config.yaml")["log"]["console"] == "plain"
    assert " INFO command: surefoot train CartPole-v1 --seeds '3 '\n" in (tmp_path / "run" / "log.txt").read_text()
    assert capsys.readouterr().out == ""
