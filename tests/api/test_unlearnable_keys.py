"""MiniGrid's mission is text: it is left out with a warning, in every engine, and everything else works."""

import logging
from typing import Any

import gymnasium as gym
import minigrid
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from surefoot.api import PPO

ID = "minigrid:MiniGrid-Empty-5x5-v0"
TINY = {"num_envs": 2, "num_steps": 8, "batch_size": 16, "epochs": 1, "eval_episodes": 0, "max_episode_steps": 10}
WARNING = "a policy cannot learn from mission (MissionSpace); left out of the observation"


def one_env() -> gym.Env[Any, Any]:
    assert minigrid is not None, "which registers the id"
    return gym.make("MiniGrid-Empty-5x5-v0", max_steps=10)


def full_observation() -> dict[str, Any]:
    obs: dict[str, Any] = one_env().reset(seed=0)[0]
    assert isinstance(obs["mission"], str)
    return obs


@pytest.mark.parametrize("engine", ["auto", "processes"])
def test_an_id_trains_in_every_engine_with_one_warning(engine, caplog, tmp_path):
    with caplog.at_level(logging.WARNING, "surefoot"):
        agent = PPO(ID, engine=engine, **TINY)
        agent.learn(16)
        agent.evaluate(2)
    assert [record.message for record in caplog.records if "learn from" in record.message] == [WARNING]
    assert sorted(agent.specs.obs) == ["direction", "image"]
    agent.save(tmp_path / "grid.safetensors")
    again = PPO.load(tmp_path / "grid.safetensors", trust=True)
    assert again.predict(full_observation())[0] == agent.predict(full_observation())[0]
    again.learn(16)
    agent.close()
    again.close()


def test_a_vector_env_has_one_mission_per_row():
    envs = SyncVectorEnv([one_env, one_env], autoreset_mode=AutoresetMode.NEXT_STEP)
    settings = {name: value for name, value in TINY.items() if name not in ("num_envs", "max_episode_steps")}
    agent = PPO(envs, **settings).learn(16)
    obs, _ = envs.reset(seed=0)
    assert agent.predict(obs)[0].shape == (2,)
