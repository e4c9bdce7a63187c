"""The processes engine from the command line: the same run as with `local`, and it can change on resume."""

from pathlib import Path

import pytest

from surefoot.training.checkpoint import read_checkpoint
from tests.cli.processes import surefoot

SMALL = (
    *("--rollout.num_envs", 4, "--rollout.num_steps", 16, "--ppo.batch_size", 32, "--train.eval_episodes", 2),
    *("--optimizer.lr_schedule", "constant", "--ppo.clip_schedule", "constant"),  # which know nothing of the total
)


def weights(run: Path) -> list[bytes]:
    newest = max((run / "checkpoints").iterdir())
    return [value.numpy().tobytes() for value in read_checkpoint(newest)["policy"].values()]


def train(run: Path, *arguments: object) -> None:
    surefoot("train", "CartPole-v1", *SMALL, "--run-dir", run, *arguments).succeeded()


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    run = tmp_path_factory.mktemp("runs") / "local"
    train(run, "--steps", 256, "--rollout.groups", 2, "--rollout.engine", "local")
    return weights(run)


@pytest.mark.parametrize("workers", [1, 3])
def test_a_run_in_processes_is_the_local_run(workers, reference, tmp_path):
    train(
        tmp_path / "run", "--steps", 256, *("--rollout.groups", 2, "--rollout.engine", "processes"),
        *("--rollout.workers", workers),
    )  # fmt: skip
    assert weights(tmp_path / "run") == reference


def test_a_run_may_change_its_engine_and_still_goes_on_bit_for_bit(reference, tmp_path):
    run = tmp_path / "run"
    train(run, "--steps", 128, "--rollout.groups", 2, "--rollout.engine", "processes")
    surefoot("resume", run, "--steps", 256, "--rollout.engine", "local").succeeded()
    assert weights(run) == reference


def test_an_unknown_engine_is_refused_with_the_nearest(tmp_path):
    result = surefoot("train", "CartPole-v1", "--rollout.engine", "process", "--run-dir", tmp_path / "run")
    assert "did you mean 'processes'?" in result.refused()
