"""`native.make`: a Gymnasium vector env that checks what it is given."""

import threading

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.wrappers import TransformReward

from surefoot.envs import native
from surefoot.envs.engines.native import NativeEngine
from surefoot.envs.make import make_vec_env
from surefoot.errors import NativeError
from surefoot.settings.config import EnvConfig, RolloutConfig


def test_it_is_a_vector_env_that_resets_in_the_same_step():
    envs = native.make("Hopper-v5", num_envs=3, threads=2, max_episode_steps=4)
    assert isinstance(envs, VectorEnv)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    obs, _ = envs.reset(seed=3)
    assert envs.observation_space.contains(obs)
    for step in range(4):
        obs, reward, _, truncated, info = envs.step(envs.action_space.sample())
        assert reward.shape == (3,)
        assert truncated.all() == (step == 3)
    assert info["_final_obs"].all()
    assert not np.array_equal(info["final_obs"], obs)


def test_a_reset_without_a_seed_goes_on_as_gymnasium_s_does():
    ours = native.make("CartPole-v1", num_envs=3)
    theirs = SyncVectorEnv([lambda: gym.make("CartPole-v1")] * 3)
    for seed in (42, None, None, [1, 5, 9], None):
        assert np.array_equal(ours.reset(seed=seed)[0], theirs.reset(seed=seed)[0])
    assert not np.array_equal(*(native.make("CartPole-v1").reset()[0] for _ in range(2)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_envs": 0}, "num_envs must be a whole number of at least 1, not 0"),
        ({"num_envs": 2.5}, "num_envs must be a whole number"),
        ({"threads": -1}, "threads must be a whole number of at least 0"),
        ({"max_episode_steps": 0}, "max_episode_steps must be a whole number of at least 1"),
        ({"max_episode_steps": "a"}, "max_episode_steps must be a whole number"),
        ({"nonsense": 1}, "has no native option 'nonsense'"),
        ({"g": "10"}, "option 'g' must be a number"),
        ({"g": np.float64(9.8)}, "is a numpy number"),
    ],
)
def test_bad_arguments_are_typed_errors(arguments, message):
    with pytest.raises(NativeError, match=message):
        native.make("Pendulum-v1", **arguments)


def test_bad_actions_and_seeds_are_typed_errors():
    cart, pendulum = native.make("CartPole-v1", 2), native.make("Pendulum-v1", 2)
    for envs, actions in ((cart, [0, 2]), (cart, [[0], [1]]), (pendulum, np.zeros((1, 2))), (pendulum, [0.0])):
        envs.reset(seed=0)
        with pytest.raises(NativeError, match="actions must be in"):
            envs.step(np.array(actions))
    for seed in (-1, [1], [None, 1], 1.5):
        with pytest.raises((NativeError, TypeError), match=r"seed must be|not iterable"):
            cart.reset(seed=seed)


def test_no_time_limit_as_gymnasium_writes_it():
    envs = native.make("Pendulum-v1", 1, max_episode_steps=-1)
    envs.reset(seed=0)
    assert not any(envs.step(np.zeros((1, 1), np.float32))[3].any() for _ in range(300))


def test_closed_envs_say_so():
    envs = native.make("CartPole-v1", 2)
    envs.close()
    with pytest.raises(NativeError, match="closed"):
        envs.reset(seed=0)


@pytest.mark.parametrize(
    "changes",
    [
        {"entry_point": lambda **kwargs: TransformReward(gym.make("CartPole-v1", **kwargs), abs)},
        {"kwargs": {"sutton_barto_reward": True}},
    ],
)
def test_another_env_under_a_known_id_is_not_taken_for_it(changes):
    known = gym.spec("Acrobot-v1")
    gym.registry["Acrobot-v1"] = gym.envs.registration.EnvSpec(
        **{"id": "Acrobot-v1", "entry_point": "gymnasium.envs.classic_control.cartpole:CartPoleEnv", **changes}
    )
    try:
        env = make_vec_env("Acrobot-v1", EnvConfig(), 2, 0, RolloutConfig(engine="auto"))
        assert not isinstance(env, NativeEngine)
        assert "registered for a different env" in env.why_not_native
        env.close()
    finally:
        gym.registry["Acrobot-v1"] = known


def test_two_threads_cannot_use_one_engine():
    envs = native.make("HalfCheetah-v5", num_envs=64, threads=2)
    envs.reset(seed=0)
    actions, errors = np.zeros((64, 6), np.float32), []

    def step():
        for _ in range(20):
            try:
                envs.step(actions)
            except NativeError as error:
                errors.append(str(error))

    threads = [threading.Thread(target=step) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors
    assert all("in use by another thread" in error for error in errors)


def test_steps_before_the_first_reset_are_refused():
    envs = native.make("CartPole-v1", num_envs=2)
    with pytest.raises(NativeError, match="reset the envs before the first step"):
        envs.step(np.array([0, 1]))
    other = native.make("CartPole-v1", num_envs=2)
    other.reset(seed=3)
    envs.load_state(other.save_state())
    assert np.array_equal(envs.step(np.array([0, 1]))[0], other.step(np.array([0, 1]))[0])


def test_options_of_a_reset_are_refused_rather_than_ignored():
    envs = native.make("CartPole-v1", num_envs=2)
    envs.reset(seed=1, options={})
    with pytest.raises(NativeError, match="do not take reset options such as 'low', 'high'"):
        envs.reset(options={"low": -0.5, "high": 0.5})


def test_choices_are_whole():
    envs = native.make("CartPole-v1", num_envs=2)
    envs.reset(seed=1)
    envs.step(np.array([0.0, 1.0]))
    for wrong in ([0.7, 1.9], [np.nan, 1.0]):
        with pytest.raises(NativeError, match="actions must be in"):
            envs.step(np.array(wrong))
