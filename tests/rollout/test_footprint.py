"""Fault 27: a rollout that does not fit is refused before it is allocated, with its predicted size."""

import resource
from pathlib import Path

import pytest

from surefoot import PPO
from surefoot.data.records import Chunks
from surefoot.errors import ConfigError
from surefoot.machine.ram import free_ram, readable
from surefoot.rollout.footprint import rollout_bytes
from surefoot.rollout.stepwise import StepwiseCollector
from tests.cli.processes import Process, surefoot
from tests.envs.tasks import CounterEnv, counters
from tests.rollout.known_policies import KnownPolicy


@pytest.mark.parametrize("form", ["vector", "picture dict"])
def test_the_prediction_is_what_the_buffer_takes_and_once_more(form):
    env = counters(3, form=form, masks_in_info=True)
    policy = KnownPolicy(env.action_spec)
    buffer = StepwiseCollector(counters(3, masks_in_info=True), policy, 8, 0).rows.buffer if form == "vector" else None
    predicted = rollout_bytes(8, env, policy, Chunks(8, 8))
    if buffer is not None:
        taken = sum(leaf.untyped_storage().nbytes() for leaf in buffer.tensors.values())
        targets = 8 * 3 * (4 + 4)
        assert predicted / 2 == taken + targets
    assert predicted >= 2 * 8 * 3 * sum(spec.size for spec in ([env.obs_spec] if buffer else env.obs_spec.values()))


def test_a_rollout_larger_than_memory_is_refused_with_its_size():
    agent = PPO("CartPole-v1", num_envs=8, num_steps=2**40, batch_size=64)
    with pytest.raises(
        ConfigError, match=r"take \d+ TB of memory, but only .* are available; lower rollout\.num_steps"
    ):
        agent.learn(1)


def test_on_the_command_line_it_is_one_line_and_leaves_no_run(tmp_path):
    result = surefoot("train", "CartPole-v1", "--rollout.num_steps", 2**40, "--run-dir", tmp_path / "run")
    assert "lower rollout.num_steps or rollout.num_envs" in result.refused()
    assert not (tmp_path / "run").exists()


def test_the_size_is_written_to_the_log(tmp_path):
    PPO(CounterEnv, num_envs=2, num_steps=8, batch_size=16, eval_episodes=0).learn(16, run_dir=tmp_path)
    assert "a rollout of 8 steps with 2 rows takes 2 KB of memory" in (tmp_path / "log.txt").read_text()


def learn_within(megabytes: int) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + megabytes * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    assert free_ram() <= megabytes * 2**20
    try:
        PPO("CartPole-v1", num_steps=2**22, num_envs=8, batch_size=64).learn(1)
    except ConfigError as error:
        assert "are available" in str(error)  # noqa: PT017
    else:
        raise AssertionError("it was not refused")


def test_the_limit_of_the_process_counts():
    Process(learn_within, 1000).wait().succeeded()


def test_sizes_for_people():
    assert [readable(count) for count in (0, 999, 1234, 5_600_000, 7_890_000_000, 3 * 10**15)] == [
        *("0 B", "999 B", "1.23 KB", "5.6 MB", "7.89 GB", "3e+03 TB")
    ]
