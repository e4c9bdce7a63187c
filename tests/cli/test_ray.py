"""`surefoot train --rollout.engine ray` starts a cluster on this machine, and its run can continue without one."""

import psutil
import pytest

from tests.cli.processes import start, surefoot
from tests.cli.runs import TINY, newest, records, train
from tests.training.states import assert_same

LARGE = ("--rollout.num_envs", 64, "--rollout.num_steps", 256, "--ppo.batch_size", 16384, "--policy.hidden", 256, 256)
CONSTANT = ("--schedules.lr", "constant", "--schedules.clip", "constant")

pytestmark = pytest.mark.xdist_group("ray")


def test_a_run_on_a_local_cluster_is_the_run_of_one_machine_and_continues_as_one(tmp_path):
    arguments = (*TINY, "--normalize.obs", "--train.eval_episodes", 2, *CONSTANT)
    ray = ("--rollout.engine", "ray", "--rollout.engine.actors", 2)
    finished = train("Pendulum-v1", tmp_path / "ray", *arguments, *ray, "--steps", 64)
    assert "2 Ray actors on 1 machine, native in each" in finished.out
    train("Pendulum-v1", tmp_path / "native", *arguments, "--rollout.engine", "native", "--steps", 96)
    assert records(tmp_path / "ray")[:1] == records(tmp_path / "native")[:1]
    surefoot("resume", tmp_path / "ray", "--steps", 96, "--rollout.engine", "native").succeeded()
    ours, theirs = newest(tmp_path / "ray"), newest(tmp_path / "native")
    other = {"config": {}, "best_score": 0.0}  # the first run was evaluated once more, when it ended
    assert_same(ours | other, theirs | other)


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("name", "lost", "sizes"),
    [
        ("raylet", "its raylet on this machine ended", ()),
        # By Ray's own limit, policy and rollouts would travel through its object store, and half of the runs end mute.
        *(("raylet", "its raylet on this machine ended", (*LARGE, "--train.seed", seed)) for seed in range(3)),
        ("gcs_server", "its head node ended", ()),
    ],
)
def test_a_cluster_that_is_lost_ends_the_run_with_a_saved_run(tmp_path, name, lost, sizes):
    run = tmp_path / "run"
    ray = ("--rollout.engine", "ray", "--rollout.engine.actors", 2)
    process = start("train", "Pendulum-v1", "--run-dir", run, *TINY, *ray, *sizes, "--steps", 10**8)
    process.wait_until(lambda: (run / "metrics.jsonl").exists() and len(records(run)) > 3)
    (found,) = (one for one in psutil.Process(process.pid).children(recursive=True) if one.name() == name)
    found.kill()
    finished = process.wait()
    assert finished.code == 2, finished
    (message,) = (line for line in finished.err.splitlines() if line.startswith("error: "))  # Ray has its own to say
    assert f"the Ray cluster was lost: {lost}" in message
    step = newest(run)["progress"]["step"]
    assert step == records(run)[-1]["step"]
    surefoot("resume", run, "--steps", step + 64, "--rollout.engine", "native").succeeded()
