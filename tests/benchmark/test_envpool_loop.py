"""The plain loop is real PPO: its advantages are right around resets, and it learns."""

import pytest
import torch

pytest.importorskip("envpool")

from benchmarks import tasks
from benchmarks.peers.envpool_loop import EnvPoolLoop, advantages
from benchmarks.tasks import Task
from surefoot.learning.estimators.gae import gae

TASK = Task("small", "CartPole-v1", 8, 128, 4, 4)


def test_advantages_equal_ours_with_resets_in_the_next_step() -> None:
    """Row 0 terminates at step 1, row 1 is truncated at step 2; the step after each only resets."""
    generator = torch.Generator().manual_seed(0)
    reward, value = torch.randn(2, 5, 2, generator=generator)
    last_value = torch.randn(2, generator=generator)
    terminated, truncated = torch.zeros(2, 5, 2, dtype=torch.bool)
    terminated[1, 0], truncated[2, 1] = True, True
    ended = terminated | truncated
    valid = torch.cat((torch.ones(1, 2, dtype=torch.bool), ~ended[:-1]))
    rollout = {"reward": reward, "value": value, "terminated": terminated, "ended": ended, "valid": valid}
    found = advantages(rollout, last_value)

    final = torch.where(truncated, torch.cat((value[1:], last_value[None])), 0.0)
    endings = (terminated, truncated, final)
    expected, _ = gae(reward, value, last_value, *endings, tasks.GAMMA, tasks.GAE_LAMBDA, valid)
    torch.testing.assert_close(found, expected)
    assert found[2, 0] == found[3, 1] == 0


@pytest.mark.filterwarnings("ignore:.*precision lowered")  # EnvPool declares its bounds in float64
def test_it_learns_and_counts_only_what_it_executed() -> None:
    """A reset takes a step that is not counted, so that longer episodes show as more executed steps."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        loop = EnvPoolLoop(TASK, threads=1)
        try:
            asked = 4 * TASK.num_envs * TASK.num_steps
            first = loop.run(4)
            loop.run(16)
            last = loop.run(4)
        finally:
            loop.close()
    assert first.steps < asked
    assert asked - last.steps < 0.5 * (asked - first.steps)
