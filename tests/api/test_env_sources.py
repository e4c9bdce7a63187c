"""Envs that are passed as objects: lists of factories, and instances that evaluations share with training."""

from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

from surefoot import PPO
from surefoot.errors import ConfigError, EnvError
from tests.envs.tasks import CounterEnv

TINY: dict[str, Any] = {"num_steps": 16, "batch_size": 16, "epochs": 1, "hidden": [8], "eval_episodes": 2}


def weak() -> gym.Env:
    return gym.make("Pendulum-v1", g=1.0, max_episode_steps=8)


def strong() -> gym.Env:
    return gym.make("Pendulum-v1", g=15.0, max_episode_steps=8)


@pytest.mark.parametrize("engine", ["auto", "local"])
def test_one_env_per_factory(engine):
    agent = PPO([weak, strong, strong], engine=engine, **TINY)
    assert (agent.config.rollout.num_envs, agent.config.env.id) == (3, "weak+strong")
    agent.learn(96)
    rewards = agent.evaluate(4, seed=3).rewards
    alone = [PPO.evaluate(agent, 2, seed=3, env=[one]).rewards for one in (weak, strong)]
    assert rewards[0] == alone[0][0], "the first env is weak"
    assert rewards[2] not in alone[0], "the last is not"
    agent.close()


def test_engines_agree_about_them():
    learned = []
    for engine in ("local", "processes"):
        agent = PPO((weak, strong), engine=engine, workers=1, **{**TINY, "eval_episodes": 0}).learn(64)
        learned.append([agent.predict(np.zeros(3, np.float32))[0].tolist(), agent.evaluate(2).rewards])
        agent.close()
    assert learned[0] == learned[1]


def test_settings_of_ids_are_refused_where_an_env_is_passed():
    remedies = {"kwargs": {"g": 9.0}, "eval_kwargs": {"g": 9.0}, "max_episode_steps": 5}
    for name, value in remedies.items():
        with pytest.raises(ConfigError, match=rf"^env\.{name}: applies to an id, but an env was passed; "):
            PPO(lambda: gym.make("Pendulum-v1"), **{f"env.{name}": value})
    PPO(lambda: gym.make("Pendulum-v1"), preset="CartPole-v1", eval_kwargs={}, max_episode_steps=None)


def test_a_number_that_contradicts_them():
    with pytest.raises(ConfigError, match=r"^rollout\.num_envs: 3, but 2 envs were passed; leave the setting out$"):
        PPO([weak, strong], num_envs=3, **TINY)
    with pytest.raises(ConfigError, match=r"^rollout\.num_envs: 3, but 2 envs were passed; leave the setting out$"):
        PPO(SyncVectorEnv([weak, strong]), num_envs=3, **TINY)
    assert PPO([weak, strong], num_envs=2, **TINY).config.rollout.num_envs == 2


@pytest.mark.parametrize("envs", [[], [weak, "CartPole-v1"], [gym.make("CartPole-v1")]])
def test_lists_of_something_else(envs):
    with pytest.raises(ConfigError, match=r"^env: a list must contain functions that each create one env, not "):
        PPO(envs, **TINY)


@pytest.mark.parametrize("engine", ["local", "processes"])
def test_envs_with_different_spaces(engine):
    with pytest.raises(EnvError, match=r"has the observation space box \[4\], but the first env has box \[3\]; make"):
        PPO([weak, partial(gym.make, "CartPole-v1")], engine=engine, workers=2, **TINY)


def test_envs_with_different_actions():
    envs = [partial(gym.make, "MountainCarContinuous-v0"), partial(gym.make, "MountainCar-v0")]
    with pytest.raises(EnvError, match=r"has the action space discrete \[\] with \[3\] choices, but the first env has"):
        PPO(envs, **TINY)


def test_an_instance_that_can_save_its_state_continues_after_an_evaluation():
    def learned(evaluates: bool) -> Any:
        agent = PPO(gym.make("CartPole-v1"), seed=5, **TINY).learn(48)
        if evaluates:
            first, again = agent.evaluate(3), agent.evaluate(3)
            assert first == again, "fixed seeds"
            assert first.rewards == agent.evaluate(3, env=gym.make("CartPole-v1")).rewards
        return agent.learn(48).policy.state_dict()

    with_it, without = learned(True), learned(False)
    assert all(np.array_equal(with_it[name], without[name]) for name in without)


def test_a_vector_env_begins_new_episodes_after_an_evaluation(tmp_path):
    envs = SyncVectorEnv([partial(CounterEnv, 0), partial(CounterEnv, 1)])
    agent = PPO(envs, **TINY)
    assert len(agent.evaluate(2).rewards) == 2, "before it has learned"
    agent.learn(32)
    before = agent.evaluate(4).rewards
    assert len(before) == 4
    assert agent.evaluate(4).rewards == before
    agent.learn(32)
    agent.save(tmp_path / "agent.safetensors")
    loaded = PPO.load(tmp_path / "agent.safetensors", SyncVectorEnv([CounterEnv, CounterEnv]))
    assert len(loaded.evaluate(2).rewards) == 2
    agent.close()
    with pytest.raises(EnvError, match="the env instance of this agent is closed"):
        agent.evaluate(2)


def test_new_episodes_begin_where_the_evaluation_has_left_the_env():
    class Watched(CounterEnv):
        resets = 0

        def reset(self, **how):
            Watched.resets += 1
            return super().reset(**how)

    agent = PPO(SyncVectorEnv([Watched]), **{**TINY, "eval_episodes": 0}).learn(32)
    agent.evaluate(1)
    before = Watched.resets
    agent.learn(16)
    assert Watched.resets > before, "the interrupted episode is not continued"


def test_reprs():
    agent = PPO("CartPole-v1", memory="gru", num_envs=2, **{**TINY, "hidden": [32, 16]})
    assert repr(agent).startswith("PPO(CartPole-v1: ActorCritic 32-16 gru with ")
    assert repr(agent).endswith(" parameters, trained for 0 steps, native learner)")
    assert "trained for 32 steps" in repr(agent.learn(32))
    evaluation = agent.evaluate(3)
    assert repr(evaluation).startswith(f"Evaluation({evaluation.mean_reward:.1f} ± {evaluation.std_reward:.1f} over 3")
    assert "95% interval of the mean" in repr(evaluation)
