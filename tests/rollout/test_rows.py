"""Rows saved between two rollouts go on bit for bit, through a checkpoint file, in another process's place."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from surefoot.data.records import Episode, Rollout
from surefoot.data.tree import tree_items
from surefoot.envs.make import make_vec_env
from surefoot.envs.protocol import VecEnv
from surefoot.policies.actor_critic import ActorCritic
from surefoot.policies.policy import Policy
from surefoot.rollout.stepwise import StepwiseCollector
from surefoot.settings.config import EnvConfig, NormalizeConfig, PolicyConfig
from surefoot.training.checkpoint import read_checkpoint, write_checkpoint
from tests.envs.tasks import CounterEnv, SavingEnv, counters
from tests.rollout.known_policies import CountingPolicy, KnownPolicy


class SavingMaskEnv(SavingEnv):
    def action_masks(self) -> np.ndarray:
        return self.current_mask()


def contents(rollout: Rollout) -> dict[str, Any]:
    tensors = {name: value.clone() for name, value in vars(rollout).items() if isinstance(value, torch.Tensor)}
    leaves = {f"obs {key}": leaf.clone() for key, leaf in tree_items(rollout.obs)}
    states = {f"state {part}": value.clone() for part, value in enumerate(rollout.state)}
    return tensors | leaves | states


def assert_equal(first: dict[str, Any], second: dict[str, Any]) -> None:
    assert first.keys() == second.keys()
    for name, value in first.items():
        assert torch.equal(value, second[name]), name


def through_a_file(collector: StepwiseCollector, folder: Path) -> dict[str, Any]:
    write_checkpoint(folder / "rows.safetensors", collector.rows.state())
    return read_checkpoint(folder / "rows.safetensors")


def actor_critic(env: VecEnv) -> ActorCritic:
    torch.manual_seed(0)
    return ActorCritic(env.obs_spec, env.action_spec, PolicyConfig(hidden=(16,)), NormalizeConfig())


SETUPS = {
    "CartPole": (lambda: make_vec_env("CartPole-v1", EnvConfig(), 3, seed=1), actor_critic),
    "Pendulum": (lambda: make_vec_env("Pendulum-v1", EnvConfig(max_episode_steps=9), 3, seed=1), actor_critic),
    "Hopper": (lambda: make_vec_env("Hopper-v5", EnvConfig(max_episode_steps=9), 2, seed=1), actor_critic),
    "masks": (lambda: counters(3, SavingMaskEnv), actor_critic),
    "dict": (lambda: counters(3, SavingEnv, form="nested"), actor_critic),
    "memory": (lambda: counters(3, SavingEnv), lambda env: CountingPolicy(env.action_spec)),
}


@pytest.mark.parametrize("name", SETUPS)
def test_they_go_on_bit_for_bit(name, tmp_path):
    make, make_policy = SETUPS[name]
    collector = StepwiseCollector(make(), policy := make_policy(make()), 13, seed=4)
    for _ in range(2):
        collector.collect(policy)
    assert collector.rows.can_save_envs()
    other = StepwiseCollector(make(), policy, 13, seed=4)
    other.collect(policy)
    other.rows.load_state(through_a_file(collector, tmp_path))
    assert other.rows.is_exact is True
    for _ in range(2):
        rollout, resumed = collector.collect(policy), other.collect(policy)
        assert_equal(contents(rollout), contents(resumed))
        assert rollout.stats == resumed.stats
    assert collector.rows.step == other.rows.step == 4 * 13


def test_envs_that_cannot_say_start_new_episodes(tmp_path):
    policy: Policy = KnownPolicy(counters(1).action_spec, choose=None)
    collector = StepwiseCollector(counters(2, CounterEnv, lengths=[5]), policy, 7, seed=4)
    first = contents(collector.collect(policy))
    assert not collector.rows.can_save_envs()
    other = StepwiseCollector(counters(2, CounterEnv, lengths=[5]), policy, 7, seed=4)
    other.rows.load_state(through_a_file(collector, tmp_path))
    assert other.rows.is_exact is False
    rollout = other.collect(policy)
    assert rollout.episode_start[0].all()
    assert rollout.obs[0, :, 1:3].eq(0).all()
    assert not torch.equal(rollout.action, first["action"]), "the noise goes on where it was"
    # The two steps that were cut off are in no episode: the next one has five steps again, not seven.
    assert rollout.stats.recent[0] == Episode(10.0, 5), "finished episodes are kept"
    assert [episode.length for episode in rollout.stats.finished] == [5, 5]
    assert len(rollout.stats.recent) == 4


def test_another_number_of_rows_starts_new_episodes(tmp_path):
    policy = KnownPolicy(counters(1).action_spec)
    collector = StepwiseCollector(counters(2, SavingEnv), policy, 7, seed=4)
    collector.collect(policy)
    wider = StepwiseCollector(counters(3, SavingEnv), policy, 7, seed=4)
    wider.rows.load_state(through_a_file(collector, tmp_path))
    assert wider.rows.is_exact is False
    rollout = wider.collect(policy)
    assert rollout.episode_start[0].all()
    assert wider.rows.step == 14


def test_memory_starts_anew_with_the_episodes(tmp_path):
    policy = CountingPolicy(counters(1).action_spec)
    collector = StepwiseCollector(counters(1, lengths=[50]), policy, 7, seed=4)
    collector.collect(policy)
    other = StepwiseCollector(counters(1, lengths=[50]), policy, 7, seed=4)
    other.collect(policy)
    other.rows.load_state(through_a_file(collector, tmp_path))
    assert other.rows.is_exact is False
    rollout = other.collect(policy)
    assert rollout.value[:, 0].tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert rollout.state[0].tolist() == [[0]]


def test_a_rollout_of_one_step():
    env = counters(2)
    policy = KnownPolicy(env.action_spec)
    collector = StepwiseCollector(env, policy, 1, seed=4)
    places = [collector.collect(policy).obs[0, 1, :3].tolist() for _ in range(5)]
    assert places == [[1, 0, 0], [1, 0, 1], [1, 0, 2], [1, 1, 0], [1, 2, 0]]
