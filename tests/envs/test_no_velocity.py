"""Classic tasks without velocities: Gymnasium's own otherwise, and savable in the middle of an episode."""

import gymnasium as gym
import numpy as np
import pytest

from surefoot.envs.adapters.gymnasium_factory import GymnasiumFactory
from surefoot.envs.adapters.snapshot import load_env, save_env
from surefoot.envs.make import make_vec_env
from surefoot.envs.protocol import new_slot, step_all
from surefoot.envs.tasks.registration import OWN_TASKS, register_envs
from surefoot.settings.config import EnvConfig

TASKS = [
    ("CartPoleNoVel-v1", "CartPole-v1", [0, 2]),
    ("PendulumNoVel-v1", "Pendulum-v1", [0, 1]),
    ("AcrobotNoVel-v1", "Acrobot-v1", [0, 1, 2, 3]),
]


@pytest.fixture(scope="module", autouse=True)
def _own_tasks() -> None:
    register_envs()


def test_registering_twice_changes_nothing(recwarn):
    known = dict(gym.registry)
    register_envs()
    assert dict(gym.registry) == known
    assert set(OWN_TASKS) <= set(known)
    assert not recwarn.list, "Gymnasium warns of ids that are registered again"


@pytest.mark.parametrize(("env_id", "whole_id", "shown"), TASKS)
def test_shows_part_of_what_gymnasium_shows(env_id, whole_id, shown):
    env, whole = gym.make(env_id), gym.make(whole_id)
    assert env.spec.max_episode_steps == whole.spec.max_episode_steps
    np.testing.assert_array_equal(env.observation_space.low, whole.observation_space.low[shown])
    np.testing.assert_array_equal(env.observation_space.high, whole.observation_space.high[shown])
    np.testing.assert_array_equal(env.reset(seed=3)[0], whole.reset(seed=3)[0][shown])
    whole.action_space.seed(1)
    for _ in range(300):
        action = whole.action_space.sample()
        obs, *rest, _ = env.step(action)
        expected, *expected_rest, _ = whole.step(action)
        assert obs in env.observation_space
        np.testing.assert_array_equal(obs, expected[shown])
        assert rest == expected_rest
        if any(rest[1:]):
            np.testing.assert_array_equal(env.reset()[0], whole.reset()[0][shown])


def test_takes_the_options_of_the_whole_task():
    assert gym.make("PendulumNoVel-v1", g=9.81).unwrapped.g == 9.81
    env = gym.make("CartPoleNoVel-v1", sutton_barto_reward=True)
    env.reset(seed=0)
    assert env.step(0)[1] == 0.0


@pytest.mark.parametrize("env_id", [env_id for env_id, _, _ in TASKS])
def test_is_saved_in_the_middle_of_an_episode(env_id):
    env, fresh = gym.make(env_id), gym.make(env_id)
    env.reset(seed=4)
    env.action_space.seed(5)
    actions = [env.action_space.sample() for _ in range(15)]
    for action in actions[:6]:
        env.step(action)
    snapshot = save_env(env)
    assert snapshot is not None
    load_env(fresh, snapshot)
    for action in actions[6:]:
        for one, other in zip(env.step(action), fresh.step(action), strict=True):
            np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(env.reset()[0], fresh.reset()[0])


@pytest.mark.parametrize("env_id", sorted(OWN_TASKS))
def test_the_local_engine_goes_on_from_a_saved_state(env_id):
    make = GymnasiumFactory(env_id, {}, 12, None)
    env, fresh = (make_vec_env(make, EnvConfig(), 2, seed) for seed in (1, 2))
    slots = [new_slot(2, env.obs_spec, env.mask_size) for _ in range(2)]
    env.reset(slots[0])
    fresh.reset(slots[1])
    action = np.stack([make().action_space.sample()] * 2)
    for _ in range(5):
        step_all(env, action, slots[0])
    state = env.save_state()
    assert state is not None
    fresh.load_state(state)
    for _ in range(30):
        step_all(env, action, slots[0])
        step_all(fresh, action, slots[1])
        np.testing.assert_equal(slots[1].obs, slots[0].obs)
        np.testing.assert_array_equal(slots[1].reward, slots[0].reward)
        np.testing.assert_array_equal(slots[1].ended, slots[0].ended)
