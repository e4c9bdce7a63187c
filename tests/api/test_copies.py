"""Copies of agents learn on by themselves, as the original would."""

from copy import deepcopy

import gymnasium as gym
import numpy as np
import pytest
import torch

from surefoot import PPO
from surefoot.errors import EnvError

SETTINGS = {
    "policy": {"hidden": [4]},
    "rollout": {"num_envs": 2, "num_steps": 16},
    "ppo": {"batch_size": 16, "epochs": 1},
    "train": {"steps": 64, "seed": 3},
}


@pytest.mark.parametrize("engine", ["native", "local"])
def test_a_copy_learns_on_as_the_original_does(engine):
    settings = SETTINGS | {"rollout": SETTINGS["rollout"] | {"engine": engine}}
    agent = PPO("CartPole-v1", **settings).learn(64)
    copy = deepcopy(agent)
    before = {name: tensor.clone() for name, tensor in copy.policy.state_dict().items()}
    agent.learn(64)
    assert all(torch.equal(tensor, before[name]) for name, tensor in copy.policy.state_dict().items())
    copy.learn(64)
    theirs = agent.policy.state_dict()
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in copy.policy.state_dict().items())
    obs = np.zeros(4, np.float32)
    assert copy.predict(obs, deterministic=False)[0] == agent.predict(obs, deterministic=False)[0]
    agent.close()
    copy.close()


def test_a_copy_of_one_that_has_not_learned_yet():
    agent = PPO("CartPole-v1", **SETTINGS)
    copy = deepcopy([agent, agent])
    assert copy[0] is copy[1]
    assert copy[0].policy is not agent.policy
    copy[0].learn()
    copy[0].close()
    agent.close()


def test_one_with_an_env_that_exists_says_what_to_do_instead():
    agent = PPO(gym.make("CartPole-v1"), **{**SETTINGS, "rollout": {"num_steps": 32}})
    with pytest.raises(EnvError, match=r"cannot be copied; save it, then PPO\.load\(path, env=\.\.\.\)"):
        deepcopy(agent)
    agent.close()
