"""Envs for evaluation have arguments of their own: unclipped rewards, whole games."""

import pytest

from surefoot.api import PPO
from surefoot.compose import evaluator
from surefoot.errors import ConfigError
from surefoot.saved_run import untrusted_env
from surefoot.settings.layers import build_config

HEAVY, LIGHT = {"g": 10.0}, {"g": 0.0}
TINY = {"num_envs": 1, "num_steps": 8, "batch_size": 8, "epochs": 1, "eval_episodes": 2, "preset": "none"}


def test_every_evaluation_takes_them(tmp_path):
    heavy, light = PPO("Pendulum-v1", kwargs=HEAVY, **TINY), PPO("Pendulum-v1", kwargs=LIGHT, **TINY)
    agent = PPO("Pendulum-v1", kwargs=LIGHT, eval_kwargs=HEAVY, **TINY)  # the weights depend only on the seed
    assert agent.evaluate(2).rewards == heavy.evaluate(2).rewards != light.evaluate(2).rewards
    during_training = [evaluator(one.config, one.policy, None)().rewards for one in (agent, heavy, light)]
    assert during_training[0] == during_training[1] != during_training[2]
    agent.save(tmp_path / "agent.safetensors")
    assert PPO.load(tmp_path / "agent.safetensors").evaluate(2).rewards == heavy.evaluate(2).rewards


def test_training_does_not():
    weights = []
    for settings in ({}, {"eval_kwargs": HEAVY}):
        agent = PPO("Pendulum-v1", kwargs=LIGHT, **TINY, **settings).learn(16)
        weights.append(agent.policy.state_dict())
    assert all(value.equal(weights[1][name]) for name, value in weights[0].items())


def test_a_file_in_them_must_be_trusted():
    config = build_config({"env.id": "Market-v0", "env.eval_kwargs": {"prices": "/tmp/prices.csv"}})
    assert untrusted_env(config, False) == "/tmp/prices.csv"
    assert untrusted_env(config, True) == ""


def test_they_are_plain():
    with pytest.raises(ConfigError, match="must consist of numbers"):
        build_config({"env.eval_kwargs": {"g": object()}})
