"""Several processes train one policy: the result is that of one process."""

import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.training.rank_cases import CASES, UPDATES

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "0"]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ranks")
    command = [*TORCHRUN, "-m", "tests.training.rank_cases", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-5000:]
    return folder


@cache
def read(path: Path) -> dict[str, Any]:
    return torch.load(path, weights_only=False)


def difference(ours: dict[str, Any], theirs: dict[str, Any]) -> float:
    moved = (theirs["after"] - theirs["before"]).norm()
    assert moved > 0.01
    return float((ours["after"] - theirs["after"]).norm() / moved)


@pytest.mark.parametrize("name", CASES)
def test_two_processes_learn_what_one_learns(results: Path, name: str) -> None:
    alone, first, second = (read(results / f"{name}.{who}.pt") for who in ("alone", "0", "1"))
    assert ("PyTorch (" in first["learner"]) == name.endswith("torch")
    assert difference(first, alone) < 1e-4
    assert torch.equal(first["after"], second["after"])
    for key, statistic in first["statistics"].items():
        assert torch.equal(statistic, second["statistics"][key]), key
        torch.testing.assert_close(statistic, alone["statistics"][key], rtol=1e-4, atol=1e-4)
    assert first["steps"] == second["steps"] == alone["steps"]
    assert first["recent"] == second["recent"] == pytest.approx(alone["recent"], rel=1e-5)
    assert len(first["learned"]) == UPDATES
    for ours, theirs, others in zip(first["learned"], alone["learned"], second["learned"], strict=True):
        for key in ("policy_loss", "value_loss", "entropy", "approx_kl", "clip_fraction", "explained_variance"):
            assert ours[key] == others[key]
            assert ours[key] == pytest.approx(theirs[key], rel=1e-3, abs=1e-4, nan_ok=True), key
        assert ours["epochs"] == others["epochs"] == theirs["epochs"]
