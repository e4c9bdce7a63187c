"""The T-maze asks for memory and for nothing else: who remembers the cue always succeeds, who cannot, half the time."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from surefoot.envs.make import make_vec_env
from surefoot.envs.tasks.registration import register_envs
from surefoot.envs.tasks.t_maze import DOWN, FORWARD, UP, TMaze
from surefoot.errors import EnvError
from surefoot.settings.config import EnvConfig


@pytest.fixture(scope="module", autouse=True)
def _own_tasks() -> None:
    register_envs()


def walked(env, actions_at_junction, seed, in_corridor=FORWARD):
    """All observations, all rewards and the flags of an episode; what is done at the junction may depend on the cue."""
    obs = [env.reset(seed=seed)[0]]
    rewards, ends = [], (False, False)
    while not any(ends):
        action = actions_at_junction[int(obs[0][0])] if obs[-1][1] else in_corridor
        seen, reward, *ends, _ = env.step(action)
        obs.append(seen)
        rewards.append(reward)
    return np.array(obs), rewards, tuple(ends)


def success(env, actions_at_junction, episodes=400):
    return np.mean([sum(walked(env, actions_at_junction, seed)[1]) for seed in range(episodes)])


def test_is_a_proper_env():
    check_env(TMaze(), skip_render_check=True)


@pytest.mark.parametrize("length", [10, 50, 100])
def test_the_cue_lies_as_many_steps_back_as_the_corridor_is_long(length):
    env = gym.make("TMaze-v0", length=length)
    obs, rewards, ends = walked(env, {1: UP, -1: DOWN}, seed=3)
    assert len(rewards) == length + 1 < env.spec.max_episode_steps
    assert ends == (True, False)
    assert rewards == [0.0] * length + [1.0]
    assert obs[0][0] in (-1.0, 1.0)
    assert not obs[1:, 0].any(), "the cue is shown once"
    assert np.flatnonzero(obs[:-1, 1]).tolist() == [length], "the junction is where the choice is made"


def test_who_remembers_always_succeeds_and_who_does_not_half_the_time():
    env = TMaze(length=10)
    assert success(env, {1: UP, -1: DOWN}) == 1.0
    assert success(env, {1: DOWN, -1: UP}) == 0.0
    assert success(env, {1: FORWARD, -1: FORWARD}) == 0.0, "walking into the wall is no success"
    up, down = success(env, {1: UP, -1: UP}), success(env, {1: DOWN, -1: DOWN})
    assert up + down == 1.0
    assert 0.4 < up < 0.6


@pytest.mark.parametrize("turned", [UP, DOWN])
def test_turning_in_the_corridor_changes_nothing_but_costs_if_asked(turned):
    plain = walked(TMaze(10), {1: UP, -1: DOWN}, 5)
    free = walked(TMaze(10), {1: UP, -1: DOWN}, 5, in_corridor=turned)
    np.testing.assert_array_equal(free[0], plain[0])
    assert free[1:] == plain[1:]
    costly = walked(TMaze(10, bump_penalty=0.25), {1: UP, -1: DOWN}, 5, in_corridor=turned)
    assert costly[1] == [-0.25] * 10 + [1.0]
    assert sum(walked(TMaze(10, bump_penalty=0.25), {1: UP, -1: DOWN}, 5)[1]) == 1.0


@pytest.mark.parametrize("length", [9, 101, 10.5, "50", True, None, float("nan")])
def test_a_corridor_of_no_such_length_is_refused(length):
    with pytest.raises(gym.error.Error, match="length must be a whole number from 10 to 100, not"):
        gym.make("TMaze-v0", length=length)


@pytest.mark.parametrize("penalty", [-0.1, 1.5, "much", True, float("nan")])
def test_a_penalty_that_is_none_is_refused(penalty):
    with pytest.raises(gym.error.Error, match="bump_penalty must be a number from 0 to 1, not"):
        gym.make("TMaze-v0", bump_penalty=penalty)


def test_a_user_reads_what_is_wrong_whatever_the_engine():
    config = EnvConfig(id="TMaze-v0", kwargs={"length": 5})
    with pytest.raises(EnvError, match="'TMaze-v0' could not be created: length must be a whole number from 10 to 100"):
        make_vec_env("TMaze-v0", config, 2, 1)


def test_is_saved_between_cue_and_junction():
    env, other = TMaze(10), TMaze(10)
    for seed in range(4):
        cue = int(env.reset(seed=seed)[0][0])
        other.reset(seed=seed + 50)
        for _ in range(4):
            env.step(FORWARD)
        other.load_state(env.save_state())
        for action in [*[FORWARD] * 6, {1: UP, -1: DOWN}[cue]]:
            result, expected = other.step(action), env.step(action)
            np.testing.assert_array_equal(result[0], expected[0])
            assert result[1:] == expected[1:]
        assert result[1] == 1.0
