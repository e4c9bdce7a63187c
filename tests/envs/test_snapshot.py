"""Envs saved in the middle of an episode go on bit for bit, through a checkpoint file and into another env."""

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.classic_control import CartPoleEnv
from gymnasium.wrappers import FrameStackObservation, NormalizeObservation, TimeLimit

from surefoot.envs.adapters.snapshot import load_env, save_env
from surefoot.envs.make import gymnasium_factory
from surefoot.errors import EnvError
from surefoot.settings.config import EnvConfig
from surefoot.training.checkpoint import read_checkpoint, write_checkpoint
from tests.envs.tasks import CounterEnv, SavingEnv

CLASSIC = ["CartPole-v1", "Acrobot-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Pendulum-v1"]
MUJOCO = [
    "InvertedPendulum-v5",
    "InvertedDoublePendulum-v5",
    "Reacher-v5",
    "Pusher-v5",
    "Swimmer-v5",
    "Hopper-v5",
    "Walker2d-v5",
    "HalfCheetah-v5",
    "Ant-v5",
    "Humanoid-v5",
    "HumanoidStandup-v5",
]
BEFORE, AFTER = 37, 60


def through_a_file(snapshot: dict[str, Any], folder: Path) -> dict[str, Any]:
    write_checkpoint(folder / "env.safetensors", snapshot)
    return read_checkpoint(folder / "env.safetensors")


def step_on(env: gym.Env[Any, Any], actions: list[Any]) -> list[tuple[Any, ...]]:
    """What the env gives, and what it begins its next episodes with."""
    seen = []
    for action in actions:
        obs, reward, terminated, truncated, _ = env.step(action)
        seen.append((np.copy(obs), reward, terminated, truncated))
        if terminated or truncated:
            seen.append((np.copy(env.reset()[0]),))
    return seen


def assert_same_future(env: gym.Env[Any, Any], other: gym.Env[Any, Any], actions: list[Any]) -> int:
    """Steps both; how many episodes ended on the way."""
    futures = step_on(env, actions), step_on(other, actions)
    assert len(futures[0]) == len(futures[1])
    for step, other_step in zip(*futures, strict=True):
        for value, other_value in zip(step, other_step, strict=True):
            np.testing.assert_array_equal(value, other_value)
    return len(futures[0]) - len(actions)


def sampled(env: gym.Env[Any, Any], count: int, seed: int) -> list[Any]:
    env.action_space.seed(seed)
    return [env.action_space.sample() for _ in range(count)]


@pytest.mark.parametrize("env_id", CLASSIC + MUJOCO)
def test_goes_on_bit_for_bit(env_id, tmp_path):
    make = gymnasium_factory(env_id, EnvConfig(max_episode_steps=50))
    env, fresh = make(), make()
    env.reset(seed=4)
    step_on(env, sampled(env, BEFORE, seed=1))
    snapshot = save_env(env)
    assert snapshot is not None
    fresh.reset(seed=99)
    step_on(fresh, sampled(fresh, 3, seed=2))
    load_env(fresh, through_a_file(snapshot, tmp_path))
    num_resets = assert_same_future(env, fresh, sampled(env, AFTER, seed=3))
    assert num_resets >= 1, "the future must reach past the end of the episode"


@pytest.mark.parametrize("env_id", ["CartPole-v1", "Pendulum-v1", "HalfCheetah-v5"])
def test_right_after_a_reset(env_id, tmp_path):
    make = gymnasium_factory(env_id, EnvConfig(max_episode_steps=50))
    env, fresh = make(), make()
    env.reset(seed=4)
    load_env(fresh, through_a_file(save_env(env), tmp_path))
    assert_same_future(env, fresh, sampled(env, AFTER, seed=3))


def test_saving_leaves_the_env_as_it_was(tmp_path):
    make = gymnasium_factory("Hopper-v5", EnvConfig(max_episode_steps=50))
    env, undisturbed = make(), make()
    for each in (env, undisturbed):
        each.reset(seed=4)
        step_on(each, sampled(env, BEFORE, seed=1))
    snapshot = save_env(env)
    assert_same_future(env, undisturbed, sampled(env, AFTER, seed=3))
    # And the snapshot does not change with the env that it was taken from.
    again = make()
    again.reset(seed=4)
    step_on(again, sampled(env, BEFORE, seed=1))
    fresh = make()
    load_env(fresh, through_a_file(snapshot, tmp_path))
    assert_same_future(again, fresh, sampled(env, AFTER, seed=3))


def test_an_env_of_your_own_takes_part(tmp_path):
    env, fresh = (TimeLimit(SavingEnv(lengths=[20]), 6) for _ in range(2))
    env.reset(seed=4)
    step_on(env, [1] * 4)
    load_env(fresh, through_a_file(save_env(env), tmp_path))
    assert fresh.unwrapped.place == env.unwrapped.place
    assert assert_same_future(env, fresh, [2, 3] * 10) == 4


class UnknownWrapper(gym.Wrapper):
    """May remember anything."""


class MyCartPole(CartPoleEnv):
    """A user's own variant may remember anything too."""


@pytest.mark.parametrize(
    "make",
    [
        CounterEnv,
        lambda: UnknownWrapper(gym.make("CartPole-v1")),
        lambda: TimeLimit(UnknownWrapper(SavingEnv()), 5),
        lambda: NormalizeObservation(gym.make("Pendulum-v1")),
        lambda: FrameStackObservation(gym.make("Pendulum-v1"), 2),
        lambda: gym.make("FrozenLake-v1"),
        MyCartPole,
    ],
)
def test_what_is_not_known_in_full_is_not_saved(make):
    env = make()
    env.reset(seed=0)
    assert save_env(env) is None


def test_an_env_with_other_wrappers_is_refused():
    env = gym.make("CartPole-v1")
    env.reset(seed=0)
    saved = save_env(env)
    assert saved is not None
    with pytest.raises(EnvError, match="different wrappers"):
        load_env(env.unwrapped, saved)
