"""`surefoot train --rollout.engine ray` starts a cluster on this machine, and its run can continue without one."""

import pytest

from tests.cli.processes import surefoot
from tests.cli.runs import TINY, newest, records, train
from tests.training.states import assert_same

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
