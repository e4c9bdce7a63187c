"""Hooks load trained policies: from a file, a run directory or the zoo, trusted as the run is."""

import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces

from surefoot import PPO, Hook
from surefoot.errors import CheckpointError, CheckpointMismatchError, ConfigError, ZooError

TINY = {"num_envs": 2, "num_steps": 8, "batch_size": 16, "epochs": 1, "eval_episodes": 0, "hidden": 8, "preset": "none"}


class Loads(Hook):
    """Loads a model and lets it act in the last row."""

    def __init__(self, model) -> None:
        super().__init__()
        self.model = model

    def begin(self) -> None:
        self.policy = self.run.load_policy(self.model)
        self.run.actors.add("frozen", self.policy)
        self.run.actors.assign(slice(-1, None), "frozen")


def loaded(model, env="CartPole-v1", **settings):
    hook = Loads(model)
    PPO(env, **TINY, **settings).learn(16, hooks=[hook], progress=False)
    return hook.policy


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    agent = PPO("CartPole-v1", memory="gru", **TINY).learn(16, run_dir=folder / "run", progress=False)
    agent.save(folder / "whole.safetensors")
    agent.save(folder / "policy.safetensors", policy_only=True)
    return folder / "run"


@pytest.mark.parametrize("where", ["run", "whole.safetensors", "policy.safetensors"])
def test_the_weights_are_those_of_the_model_and_stay(run, where):
    policy, wanted = loaded(run.parent / where), PPO.load(run).policy.state_dict()
    assert all(value.equal(wanted[name]) for name, value in policy.state_dict().items())
    assert not any(parameter.requires_grad for parameter in policy.parameters())
    assert not policy.training


def test_a_policy_of_the_zoo():
    assert loaded("zoo:CartPole-v1")(torch.zeros(1, 4), (), torch.ones(1, dtype=torch.bool)).value.shape == (1,)


@pytest.mark.parametrize("engine", ["local", "native"])
def test_a_resumed_run_continues_bit_for_bit(run, tmp_path, engine):
    settings = {**TINY, "engine": engine, "normalize": {"obs": True}}
    whole = PPO("CartPole-v1", **settings).learn(64, hooks=[Loads(run)], progress=False)
    half = PPO("CartPole-v1", **settings).learn(32, hooks=[Loads(run)], progress=False)
    half.save(tmp_path / "half.safetensors")
    half = PPO.load(tmp_path / "half.safetensors").learn(32, hooks=[Loads(run)], progress=False)
    wanted = whole.policy.state_dict()
    assert all(value.equal(wanted[name]) for name, value in half.policy.state_dict().items())


def test_bad_models_are_refused_with_their_names(run, tmp_path):
    for model, kind, message in (
        (tmp_path / "none.safetensors", CheckpointError, "none.safetensors"),
        (tmp_path, CheckpointError, "neither a run directory nor a model file"),
        ("zoo:Nothing-v9", ZooError, "Nothing-v9"),
        ("zoo:Pendulum-v1", CheckpointMismatchError, "zoo:Pendulum-v1 was trained on Pendulum-v1, whose observation"),
    ):
        with pytest.raises(kind, match=message):
            loaded(model)


def test_foreign_code_must_be_named_in_the_config_of_the_run(tmp_path, monkeypatch):
    (tmp_path / "foreign_encoder.py").write_text(
        "from surefoot.policies.encoders.identity import IdentityEncoder\nclass Mine(IdentityEncoder):\n    pass\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    kind = "foreign_encoder:Mine"
    PPO("CartPole-v1", encoder=kind, **TINY).save(tmp_path / "model.safetensors", policy_only=True)
    monkeypatch.delitem(sys.modules, "foreign_encoder")
    with pytest.raises(CheckpointError, match=f"import '{kind}'.*; name it in this run's config"):
        loaded(tmp_path / "model.safetensors")
    assert loaded(tmp_path / "model.safetensors", encoder=kind) is not None
    with pytest.raises(ConfigError):
        loaded(tmp_path / "model.safetensors", encoder="foreign_encoder:Other")


class Keys(gym.Env):
    """Observes some keys."""

    action_space = spaces.Discrete(2)

    def __init__(self, keys=("near", "far")) -> None:
        self.observation_space = spaces.Dict({key: spaces.Box(-1, 1, (2,), np.float32) for key in keys})

    def reset(self, *, seed=None, options=None):
        return {key: np.ones(2, np.float32) for key in self.observation_space}, {}

    def step(self, action):
        return self.reset()[0], 1.0, bool(action), False, {}


def test_a_model_may_observe_fewer_keys_than_the_run(tmp_path):
    PPO(lambda: Keys(("near",)), **TINY).save(tmp_path / "near.safetensors")
    assert loaded(tmp_path / "near.safetensors", Keys) is not None
    PPO(lambda: Keys(("near", "other")), **TINY).save(tmp_path / "other.safetensors")
    with pytest.raises(CheckpointMismatchError, match="differs"):
        loaded(tmp_path / "other.safetensors", Keys)
