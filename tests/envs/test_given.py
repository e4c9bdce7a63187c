"""An env that exists is recorded by what creates it again exactly, or as an object that no file contains."""

from contextlib import closing
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import RecordEpisodeStatistics, TimeLimit, TransformReward
from gymnasium.wrappers.vector import NormalizeReward

import surefoot  # noqa: F401  registers TMaze-v0
from surefoot import PPO
from surefoot.envs import native
from surefoot.envs.given import Given, given, is_object_name
from surefoot.errors import UnknownEnvError
from surefoot.settings.layers import read_yaml

CART = "CartPole-v1"
SMALL = {"num_envs": 1, "num_steps": 16, "batch_size": 16, "hidden": 4, "eval_episodes": 0}


class Own(gym.Wrapper):
    """Records neither itself nor its arguments."""


def hundredfold():
    return TransformReward(gym.make(CART), lambda reward: 100 * reward)


AS_IDS = {
    "plain": (lambda: gym.make(CART), Given(CART)),
    "drawn": (lambda: gym.make(CART, render_mode="rgb_array"), Given(CART)),
    "watched": (lambda: RecordEpisodeStatistics(gym.make(CART)), Given(CART)),
    "kwargs": (lambda: gym.make("Pendulum-v1", g=3.0), Given("Pendulum-v1", {"g": 3.0})),
    "registered kwargs": (lambda: gym.make("FrozenLake8x8-v1"), Given("FrozenLake8x8-v1")),
    "limit": (lambda: gym.make(CART, max_episode_steps=50), Given(CART, {}, 50)),
    "two limits": (lambda: TimeLimit(gym.make(CART), 50), Given(CART, {}, 50)),
    "a longer limit outside": (lambda: TimeLimit(gym.make(CART), 5000), Given(CART)),
    "entry point is a wrapper": (lambda: gym.make("PendulumNoVel-v1"), Given("PendulumNoVel-v1")),
    "vector": (lambda: gym.make_vec(CART, 2), Given(CART)),
    "vector of envs": (
        lambda: gym.make_vec("Pendulum-v1", 2, vectorization_mode="sync", g=3.0, max_episode_steps=7),
        Given("Pendulum-v1", {"g": 3.0}, 7),
    ),
    "native": (lambda: native.make("Pendulum-v1", 2, g=3.0), Given("Pendulum-v1", {"g": 3.0})),
}
AS_OBJECTS = {
    "wrapped": (hundredfold, "TransformReward(CartPole-v1)"),
    "wrapped by a class of its own": (lambda: TimeLimit(Own(gym.make(CART)), 50), "Own(CartPole-v1)"),
    "unwrapped": (lambda: gym.make(CART).unwrapped, "CartPoleEnv(CartPole-v1)"),
    "without its time limit": (lambda: gym.make(CART, max_episode_steps=-1), "CartPoleEnv(CartPole-v1)"),
    "kwargs that no file holds": (lambda: gym.make("Pendulum-v1", g=np.float32(3)), "PendulumEnv(Pendulum-v1)"),
    "vector wrapper": (lambda: NormalizeReward(gym.make_vec(CART, 2)), "NormalizeReward(CartPole-v1)"),
    "vector of wrapped envs": (
        lambda: gym.make_vec(CART, 2, vectorization_mode="sync", wrappers=[Own]),
        "SyncVectorEnv(CartPole-v1)",
    ),
    "factories in a vector": (lambda: gym.vector.SyncVectorEnv([hundredfold]), "SyncVectorEnv"),
    "an env without a spec": (lambda: Own(gym.make(CART).unwrapped.__class__()), "Own"),
}


@pytest.mark.parametrize("case", AS_IDS)
def test_what_the_id_and_its_arguments_create_again(case):
    make, expected = AS_IDS[case]
    with closing(make()) as env:
        assert given(env) == expected


@pytest.mark.parametrize("case", AS_OBJECTS)
def test_what_no_file_contains(case):
    make, name = AS_OBJECTS[case]
    with closing(make()) as env:
        assert given(env) == Given(name)
    assert name not in gym.registry
    assert is_object_name(name) == ("(" in name)


def test_functions_have_their_own_names_even_if_an_id_has_the_same(monkeypatch):
    assert given(hundredfold).name == given(partial(hundredfold)).name == "hundredfold"
    monkeypatch.setitem(gym.registry, "hundredfold", gym.spec(CART))
    assert given(hundredfold).name == "hundredfold()"


def test_an_env_registered_again_under_the_same_id_is_another_env(monkeypatch):
    env = gym.make(CART)
    monkeypatch.setitem(gym.registry, CART, gym.envs.registration.EnvSpec(CART, entry_point=hundredfold))
    assert is_object_name(given(env).name)


def test_a_loaded_agent_gets_the_same_env_or_asks_for_it(tmp_path):
    """Training on in another env, or evaluating in one, is never silent."""
    with gym.make("Pendulum-v1", g=3.0, max_episode_steps=9) as light:
        PPO(light, **SMALL).learn(16, run_dir=tmp_path / "light")
    env = read_yaml(tmp_path / "light" / "config.yaml")["env"]
    assert (env["id"], env["kwargs"], env["max_episode_steps"]) == ("Pendulum-v1", {"g": 3.0}, 9)
    assert PPO.load(tmp_path / "light").evaluate(2).lengths[0] == 9
    PPO(hundredfold(), **SMALL).learn(16, run_dir=tmp_path / "paid")
    for use in (lambda agent: agent.learn(16), lambda agent: agent.evaluate(2)):
        with pytest.raises(UnknownEnvError, match=r"TransformReward\(CartPole-v1\) is an object with wrappers"):
            use(PPO.load(tmp_path / "paid"))
    assert PPO.load(tmp_path / "paid", env=hundredfold()).evaluate(2).rewards[0] >= 100


def test_another_env_of_the_same_id_begins_with_new_episodes(tmp_path):
    PPO(gym.make("Pendulum-v1", g=3.0), **SMALL).learn(16).save(tmp_path / "light.safetensors")
    other = PPO.load(tmp_path / "light.safetensors", env=gym.make("Pendulum-v1"))
    assert other.config.env.kwargs == {}
    assert other._saved["collector"]["envs"] is None
