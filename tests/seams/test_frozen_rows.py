"""Rows that a second policy acts in enter no loss and no statistic."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.processes import surefoot
from tests.cli.runs import QUIET, newest, records
from tests.seams.runs import bring, train_from_flags
from tests.training.states import assert_same

_MEMORY = ("--policy.memory.kind", "lstm", "--policy.memory.hidden_size", 3)
_TRAINED = ("--rollout.num_envs", 2, "--rollout.num_steps", 8, "--ppo.batch_size", 16, "--steps", 16)
_STATISTICS = ("--normalize.obs", "true", "--normalize.reward", "true", "--normalize.returns", "true")


@pytest.mark.parametrize("engine", ["local", "processes", "native"])
def test_what_another_policy_does_changes_nothing_that_is_learned(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two runs whose last two rows are acted in by different recurrent policies."""
    monkeypatch.chdir(tmp_path)
    bring(tmp_path, ["frozen_rows"])
    ended: list[tuple[dict[str, Any], Any]] = []
    for seed in (1, 2):
        earlier = Path(f"earlier{seed}")
        trained = (*_TRAINED, *_MEMORY, "--seed", seed, "--train.eval_episodes", 0, *QUIET)
        surefoot("train", "CartPole-v1", "--run-dir", earlier, *trained).succeeded()
        checkpoint = next((earlier / "checkpoints").iterdir()).rename("earlier.safetensors")
        train_from_flags("frozen_rows", Path(f"run{seed}"), "--rollout.engine", engine, *_STATISTICS)
        assert checkpoint.exists()
        ended.append((newest(Path(f"run{seed}")), records(Path(f"run{seed}"))))
    (one, metrics_one), (two, metrics_two) = ended
    for part in ("policy", "gradient", "scorer", "progress"):
        assert_same(one[part], two[part], part)
    assert metrics_one == metrics_two
    ours, theirs = (state["collector"]["opening"]["obs"] for state in (one, two))
    assert ours[:2].tolist() == theirs[:2].tolist()
    assert ours[2:].tolist() != theirs[2:].tolist(), "they did act differently"
