"""Agents of Stable-Baselines3 act alike in Surefoot."""

import pickle
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import stable_baselines3 as sb3
import torch
from gymnasium import spaces
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize
from torch import nn

from surefoot import PPO, from_sb3
from surefoot.errors import CheckpointError

SMALL = {"n_steps": 32, "batch_size": 16, "n_epochs": 2, "device": "cpu", "seed": 1}


class Rooms(gym.Env[Any, Any]):
    """Two observations at once."""

    observation_space = spaces.Dict({"walls": spaces.Box(-1, 1, (3,)), "door": spaces.Box(-1, 1, (2,))})
    action_space = spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return self.observation_space.sample(), 1.0, False, False, {}


class Levers(gym.Env[Any, Any]):
    """Several choices at once."""

    observation_space = spaces.Box(-1, 1, (5,), np.float32)
    action_space = spaces.MultiDiscrete([3, 2])

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return self.observation_space.sample(), float(action[0]), False, False, {}


def trained(env: Any, folder: Path, normalize: bool = False, **settings: Any) -> tuple[Any, Path, Path | None]:
    vector = make_vec_env(env, 2, seed=0)
    vector = VecNormalize(vector, gamma=0.9) if normalize else vector
    model = sb3.PPO("MlpPolicy", vector, **{**SMALL, **({"gamma": 0.9} if normalize else {}), **settings})
    model.learn(256)
    model.save(folder / "theirs.zip")
    if normalize:
        vector.save(str(folder / "statistics.pkl"))
    return model, folder / "theirs.zip", folder / "statistics.pkl" if normalize else None


@pytest.mark.parametrize(
    ("env", "normalize", "settings"),
    [
        ("CartPole-v1", False, {}),
        ("Pendulum-v1", True, {"policy_kwargs": {"net_arch": [24, 16], "activation_fn": nn.ReLU}, "gamma": 0.9}),
        (Levers, False, {"policy_kwargs": {"net_arch": {"pi": [8], "vf": [8, 4]}}}),
    ],
    ids=["discrete", "box, normalized", "multi-discrete"],
)
def test_it_acts_alike(env: Any, normalize: bool, settings: dict[str, Any], tmp_path: Path) -> None:
    model, path, statistics = trained(env, tmp_path, normalize, **settings)
    agent = from_sb3(path, env, statistics)
    space = model.observation_space
    high = np.minimum(space.high, 3.0)
    obs = np.random.default_rng(0).uniform(-high, high, (64, *space.shape)).astype(np.float32)
    seen = model.get_vec_normalize_env().normalize_obs(obs) if normalize else obs
    theirs, _ = model.predict(seen, deterministic=True)
    ours, _ = agent.predict(obs)
    np.testing.assert_allclose(ours, theirs, atol=1e-6)
    with torch.no_grad():
        values = model.policy.predict_values(torch.as_tensor(seen)).flatten()
        output = agent.policy(torch.from_numpy(obs), (), torch.ones(64, dtype=torch.bool))
    torch.testing.assert_close(output.value, values, atol=1e-5, rtol=1e-5)
    if "log_std" in dict(model.policy.named_parameters()):
        torch.testing.assert_close(output.distribution.std.view(-1)[:1], model.policy.log_std.exp().detach())


def test_statistics_by_key(tmp_path: Path) -> None:
    vector = VecNormalize(make_vec_env(Rooms, 2, seed=0), norm_reward=False)
    model = sb3.PPO("MultiInputPolicy", vector, **SMALL)
    model.learn(64)
    model.save(tmp_path / "theirs.zip")
    vector.save(str(tmp_path / "statistics.pkl"))
    agent = from_sb3(tmp_path / "theirs.zip", Rooms, tmp_path / "statistics.pkl")
    pick = np.random.default_rng(0)
    obs = {
        name: pick.uniform(-1, 1, (64, *box.shape)).astype(np.float32) for name, box in Rooms.observation_space.items()
    }
    theirs, _ = model.predict(vector.normalize_obs(obs), deterministic=True)
    assert np.array_equal(agent.predict(obs)[0], theirs)
    vector.norm_obs_keys = ["door"]
    del vector.obs_rms["walls"]
    vector.save(str(tmp_path / "statistics.pkl"))
    with pytest.raises(CheckpointError, match=r"has no obs_rms\.walls: Surefoot normalizes every vector, or none"):
        from_sb3(tmp_path / "theirs.zip", Rooms, tmp_path / "statistics.pkl")


@pytest.mark.parametrize("protocol", [3, 4, 5])
@pytest.mark.parametrize("core", [b"numpy._core", b"numpy.core"], ids=["numpy 2", "numpy 1"])
def test_pickles_of_old_and_new_versions(core: bytes, protocol: int, tmp_path: Path) -> None:
    _, path, statistics = trained("Pendulum-v1", tmp_path, normalize=True)
    assert statistics is not None
    with statistics.open("rb") as file:
        saved = pickle.load(file)
    saved.class_attributes, saved.returns = {}, np.zeros(2)  # which are not in the file
    saved.obs_rms.mean = np.asfortranarray(saved.obs_rms.mean.astype(">f4"))
    data = pickle.dumps(saved, protocol)
    for part in (b".multiarray", b".numeric"):
        for ending in (b"\n", b"\x94"):  # of a name in protocol 3, and later
            old, new = b"numpy._core" + part, core + part
            data = data.replace(bytes([len(old)]) + old + ending, bytes([len(new)]) + new + ending)
            data = data.replace(b"c" + old + ending, b"c" + new + ending)
    assert core + b"." in data
    statistics.write_bytes(data)
    agent = from_sb3(path, "Pendulum-v1", statistics)
    normalizer = agent.policy.preprocess.normalizer_of("")
    np.testing.assert_array_equal(normalizer.mean, saved.obs_rms.mean.astype(float))
    np.testing.assert_array_equal(normalizer.var, saved.obs_rms.var)


def test_it_can_be_trained_further_with_its_settings(tmp_path: Path) -> None:
    settings = {"gamma": 0.9, "ent_coef": 0.01, "clip_range": 0.1, "learning_rate": 1e-4, "clip_range_vf": 0.3}
    model, path, statistics = trained("Pendulum-v1", tmp_path, normalize=True, **settings)
    agent = from_sb3(path, "Pendulum-v1", statistics, seed=7)
    config = agent.config
    assert (config.ppo.gamma, config.ppo.entropy_coef, config.ppo.clip, config.optimizer.lr) == (0.9, 0.01, 0.1, 1e-4)
    assert (config.ppo.epochs, config.ppo.batch_size, config.rollout.size, config.train.seed) == (2, 16, 64, 7)
    assert config.ppo.advantage_norm == "minibatch"
    scaler = agent._started().scorer.state()["reward_scaler"]
    assert scaler["var"] == pytest.approx(float(model.get_vec_normalize_env().ret_rms.var))
    agent.learn(128)
    agent.save(tmp_path / "ours.safetensors")
    obs = np.zeros((4, 3), np.float32)
    assert np.array_equal(PPO.load(tmp_path / "ours.safetensors").predict(obs)[0], agent.predict(obs)[0])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"use_sde": True}, "gSDE"),
        ({"policy_kwargs": {"activation_fn": nn.Sigmoid}}, "has the activation 'Sigmoid'"),
    ],
)
def test_what_surefoot_cannot_do_is_refused(settings: dict[str, Any], message: str, tmp_path: Path) -> None:
    model = sb3.PPO("MlpPolicy", "Pendulum-v1", **{**SMALL, **settings})
    model.save(tmp_path / "theirs.zip")
    with pytest.raises(CheckpointError, match=message):
        from_sb3(tmp_path / "theirs.zip", "Pendulum-v1")


def test_another_env_is_refused(tmp_path: Path) -> None:
    sb3.PPO("MlpPolicy", "Pendulum-v1", **SMALL).save(tmp_path / "theirs.zip")
    with pytest.raises(CheckpointError, match="does not fit this env"):
        from_sb3(tmp_path / "theirs.zip", "MountainCarContinuous-v0")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"not a zip"])
def test_files_that_are_no_agents(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "theirs.zip"
    with pytest.raises(CheckpointError, match="does not exist"):
        from_sb3(path, "CartPole-v1")
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="is not a saved PPO agent"):
        from_sb3(path, "CartPole-v1")
