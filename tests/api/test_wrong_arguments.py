"""Arguments of the API that make no sense are refused by name, and the agent is unchanged."""

import os
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3.common.vec_env import DummyVecEnv

from surefoot import PPO
from surefoot.errors import (
    CheckpointError,
    ConfigError,
    EnvError,
    NonFiniteError,
    PolicyError,
    RunDirectoryError,
    SurefootError,
)
from tests.training.states import assert_same

SMALL = {"num_envs": 2, "num_steps": 8, "batch_size": 16, "epochs": 1, "hidden": [8], "eval_episodes": 0, "seed": 1}
OBS = np.zeros(4, np.float32)


def agent(**settings: Any) -> PPO:
    return PPO("CartPole-v1", **SMALL | settings)


@pytest.fixture(scope="module")
def trained() -> PPO:
    return agent().learn(32)


def weights(of: PPO) -> list[torch.Tensor]:
    return [part.clone() for part in of.policy.state_dict().values()]


@pytest.mark.parametrize("steps", ["x", "100", -1, 1.5, float("nan"), float("inf"), True, []])
def test_steps(trained, steps):
    before, step = weights(trained), trained.config.train.steps
    with pytest.raises(ConfigError, match=r"^learn: steps: pass a whole number of at least 0, got \S"):
        trained.learn(steps)
    assert_same(weights(trained), before)
    assert trained.config.train.steps == step


@pytest.mark.parametrize("episodes", [-1, 0, 1.5, float("nan"), "3", True, None])
def test_episodes(trained, episodes):
    with pytest.raises(ConfigError, match=r"^evaluate: episodes: pass a whole number of at least 1, got \S"):
        trained.evaluate(episodes)


@pytest.mark.parametrize("seed", ["x", 1.5, -1, 2**70])
def test_seeds_of_evaluations(trained, seed):
    with pytest.raises(ConfigError, match=r"^evaluate: seed: pass a whole number of at least 0, got \S"):
        trained.evaluate(1, seed=seed)


@pytest.mark.parametrize(
    ("obs", "error", "message"),
    [
        ([[1, 2], [3]], EnvError, "the observation cannot be converted to an array: ValueError"),
        (torch.zeros(4, requires_grad=True), EnvError, "cannot be converted to an array: RuntimeError"),
        (OBS * np.nan, NonFiniteError, "the observation contains NaN or infinity"),
        (np.full(4, 1e300), NonFiniteError, "the observation contains NaN or infinity"),
        (OBS.astype(str), EnvError, r"the observation has dtype <U\d+; the policy expects numbers"),
        (OBS.astype(object), EnvError, "the observation has dtype object; the policy expects numbers"),
        (OBS.astype(complex), EnvError, "the observation has dtype complex128; the policy expects numbers"),
        (np.float32(1), EnvError, r"has shape \(\); the policy expects \(4,\), or a batch of it"),
    ],
    ids=range(8),
)
def test_observations(trained, obs, error, message):
    with pytest.raises(error, match=message):
        trained.predict(obs)


def test_categories_outside_the_space():
    tabular = PPO("FrozenLake-v1", **SMALL)
    for obs in (-1, 16, 2**62):
        with pytest.raises(EnvError, match="is outside the space that the policy was trained with"):
            tabular.predict(obs)
    with pytest.raises(EnvError, match="has dtype float64; the policy expects integers"):
        tabular.predict(1.5)


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        ([0, -np.inf], "1 = allowed; additive masks are not supported"),
        ([1, np.nan], "1 = allowed; additive masks are not supported"),
        ([2, 0], "1 = allowed; additive masks are not supported"),
        (["a", "b"], "1 = allowed; additive masks are not supported"),
        ([[1], [1, 0]], "1 = allowed; additive masks are not supported"),
        ([0, 0], "action_mask forbids every action of a row; allow at least one"),
    ],
)
def test_masks(trained, mask, message):
    with pytest.raises(PolicyError, match=message):
        trained.predict(OBS, action_mask=mask)
    assert trained.predict(OBS, action_mask=[0.0, 1.0])[0] == 1


@pytest.mark.parametrize("start", ["x", 0.5, 2, np.nan, [[1], [1, 0]]])
def test_episode_starts(trained, start):
    with pytest.raises(PolicyError, match="episode_start must be one flag, or one per row"):
        trained.predict(OBS, episode_start=start)


def test_paths_that_cannot_be_written(trained, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (tmp_path, pipe, ""):
        with pytest.raises(CheckpointError, match=r"^cannot save .*: it is not a file; pass one"):
            trained.save(path)
    assert pipe.is_fifo(), "a pipe or a device is not replaced by a file"
    for name in ("missing/agent.safetensors", "x" * 300, "a\0b"):
        with pytest.raises(CheckpointError, match=r"^cannot save .*; choose another file"):
            trained.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == [pipe], "nothing is left behind"


def test_what_is_not_a_path(trained):
    for call in (trained.save, PPO.load, trained.export_onnx, lambda path: trained.learn(16, run_dir=path)):
        with pytest.raises(ConfigError, match=r"^pass a path, such as 'agent.safetensors', not 5"):
            call(5)


def test_a_run_directory_that_cannot_exist(trained, tmp_path):
    with pytest.raises(RunDirectoryError, match=r"a.x00b' cannot be a run directory \(embedded null byte\); choose"):
        trained.learn(16, run_dir=tmp_path / "a\0b")


def test_a_folder_is_not_a_checkpoint(tmp_path):
    with pytest.raises(CheckpointError, match="is neither a run directory nor a model file"):
        PPO.load(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"policy": 5}, "^policy: pass a surefoot.Policy or a dict of settings, not 5"),
        ({"policy": "mlp"}, "^policy: pass a surefoot.Policy or a dict of settings, not 'mlp'"),
        ({"encoder": 5}, "^encoder: pass a kind, a module or a function that creates one, not 5"),
        ({"lr": "x"}, r"^optimizer\.lr: "),
        ({"rollout": 7}, "^rollout: "),
    ],
)
def test_parts_of_other_types(arguments, message):
    with pytest.raises(ConfigError, match=message):
        PPO("CartPole-v1", **arguments)


@pytest.mark.parametrize("env", [None, 5, {}, object()])
def test_what_is_not_an_env(env):
    with pytest.raises(ConfigError, match=r"^env: pass a preset, an id, an env, a function that creates one, a list"):
        PPO(env)


def test_a_vector_env_of_stable_baselines3():
    with pytest.raises(ConfigError, match=r"DummyVecEnv.*; pass the list of functions from which it was made$"):
        PPO(DummyVecEnv([lambda: gym.make("CartPole-v1")]))


def test_the_names_of_stable_baselines3_in_calls(trained):
    with pytest.raises(ConfigError, match=r"^evaluate: unknown argument n_eval_episodes; .*; pass episodes$"):
        trained.evaluate(n_eval_episodes=3)
    with pytest.raises(ConfigError, match=r"^predict: unknown argument action_masks; .*; pass action_mask$"):
        trained.predict(OBS, action_masks=[1, 1])
    with pytest.raises(AttributeError, match=r"'PPO' object has no attribute 'num_timesteps'; see steps_trained$"):
        _ = trained.num_timesteps
    with pytest.raises(AttributeError, match=r"'PPO' object has no attribute 'nothing'$"):
        _ = trained.nothing
    with pytest.raises(ConfigError, match=r"^policy: leave MlpPolicy out: the network follows from the spaces"):
        PPO(env="CartPole-v1", policy="MlpPolicy")
    with pytest.raises(ConfigError, match=r"^optimizer\.lr: .*; to change it during a run, set schedules\.lr$"):
        PPO("CartPole-v1", lr=lambda left: left * 1e-3)


def test_what_reset_returns_is_not_an_observation(trained):
    with pytest.raises(EnvError, match=r"^pass only the observation, .*: obs, info = env\.reset\(\)$"):
        trained.predict((OBS, {}))


@pytest.mark.parametrize("hooks", [5, [5]])
def test_what_is_not_a_hook(hooks):
    with pytest.raises(ConfigError, match=r"^hooks: pass .* not (5|\[5\])"):
        agent().learn(16, hooks=hooks)


def test_a_closed_env_instance_is_not_used_again(tmp_path):
    one = PPO(gym.make("CartPole-v1"), **SMALL | {"num_envs": 1, "batch_size": 8}).learn(8)
    one.close()
    with pytest.raises(EnvError, match=r"the env instance of this agent is closed; save the agent, then PPO.load"):
        one.learn(8)
    one.save(tmp_path / "agent.safetensors")
    assert PPO.load(tmp_path / "agent.safetensors", env=gym.make("CartPole-v1")).learn(8).config.train.steps == 16


# What the caller has set in PyTorch


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_learning_without_gradients_outside(trained, mode, tmp_path):
    with mode():
        one = agent().learn(16)
        one.save(tmp_path / "agent.safetensors")
        loaded = PPO.load(tmp_path / "agent.safetensors")
        assert not torch.is_grad_enabled(), "what the caller set is restored"
    assert_same(weights(one.learn(16)), weights(trained))
    assert_same(weights(loaded.learn(16)), weights(trained))


@pytest.fixture(params=["float64", "meta"])
def other_default(request):
    """Another default dtype or device."""
    if request.param == "float64":
        torch.set_default_dtype(torch.float64)
    else:
        torch.set_default_device("meta")
    yield
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)


def test_other_defaults_of_torch(trained, other_default, tmp_path):
    one = agent().learn(16)
    one.save(tmp_path / "agent.safetensors")
    again = PPO.load(tmp_path / "agent.safetensors").learn(16)
    assert one.evaluate(1).lengths[0] > 0
    assert one.predict(OBS)[0] in (0, 1)
    for ours, theirs in zip(again.policy.parameters(), trained.policy.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_every_error_is_typed_for_other_env_classes():
    with pytest.raises(SurefootError, match="env 0 is 5, which has no observation_space"):
        PPO(lambda: 5)  # type: ignore[arg-type,return-value]
