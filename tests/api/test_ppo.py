"""PPO from everything that a user may have, learning, saving, loading."""

import os
import signal
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from surefoot import PPO
from surefoot.data.records import IterationReport
from surefoot.errors import ConfigError, EnvError, RunDirectoryError
from surefoot.presets import preset_names
from surefoot.storage.state import states
from surefoot.training.checkpoint import read_checkpoint
from surefoot.training.run_directory import RunDirectory
from tests.cli.processes import Process
from tests.cli.runs import records, saved_steps
from tests.envs.tasks import CounterEnv, SavingEnv
from tests.training.states import assert_same

TINY = {"num_steps": 16, "batch_size": 16, "epochs": 2, "hidden": 4, "eval_episodes": 0}


def tiny(env: Any = "CartPole-v1", **settings: Any) -> PPO:
    """Iterations of 32 steps."""
    return PPO(env, **TINY | ({"num_envs": 2} | settings))


def state_of(agent: PPO) -> dict[str, Any]:
    return states(agent._started().stateful())


def steps_of(agent: PPO) -> int:
    return agent._started().progress.step


# What it is made from.


def test_from_an_id_without_a_preset():
    agent = tiny("FrozenLake-v1")
    assert agent.config.env.id == "FrozenLake-v1"
    assert agent.config.ppo.gamma == 0.99
    assert steps_of(agent.learn(32)) == 32


def test_from_a_preset():
    agent = PPO("muscle-512", hidden=4, num_envs=1, num_steps=8, batch_size=8)
    assert agent.config.env.id == "Humanoid-v5"
    assert agent.config.policy.distribution.action_bounds == "rescale"
    assert agent.config.policy.hidden == (4,), "settings win over the preset"


def test_from_an_env():
    env = gym.make("CartPole-v1")
    agent = PPO(env, **TINY)
    assert agent.config.env.id == "CartPole-v1"
    assert agent.config.rollout.num_envs == 1
    assert steps_of(agent.learn(32)) == 32
    assert agent.evaluate(2, env="CartPole-v1").mean_reward > 0
    assert agent.evaluate(2).mean_reward > 0


def make_cart_pole() -> gym.Env:
    return gym.make("CartPole-v1")


def test_from_a_factory():
    assert tiny(partial(make_cart_pole)).config.env.id == "make_cart_pole"
    agent = tiny(make_cart_pole, num_envs=3, num_steps=32)
    assert agent.config.env.id == "make_cart_pole"
    assert steps_of(agent.learn(96)) == 96
    assert len(agent.evaluate(5).rewards) == 5


def test_from_other_callables():
    for factory in (lambda: gym.make("CartPole-v1"), partial(gym.make, "CartPole-v1"), CounterEnv):
        assert steps_of(tiny(factory).learn(32)) == 32


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_from_a_vector_env(mode):
    vector = SyncVectorEnv([make_cart_pole] * 4, autoreset_mode=mode)
    agent = PPO(vector, **TINY)
    assert agent.config.rollout.num_envs == 4
    agent.learn(128)
    # Steps that only reset do not count.
    assert steps_of(agent) == 128 if mode is not AutoresetMode.NEXT_STEP else steps_of(agent) >= 128
    assert len(agent.evaluate(3, env="CartPole-v1").rewards) == 3
    vector.close()


def test_from_nothing_that_exists():
    with pytest.raises(EnvError, match="unknown environment 'CartPol-v1'; did you mean 'CartPole-v1'"):
        PPO("CartPol-v1")


# Settings.


def test_settings_by_key_by_path_and_by_section():
    agent = tiny(
        gamma=0.9,
        **{"optimizer.lr": 0.5},
        normalize={"obs": True},
        ppo={"clip": 0.3},
        policy={"activation": "relu"},
        encoder="mlp",
        seed=7,
    )
    config = agent.config
    assert (config.ppo.gamma, config.optimizer.lr, config.normalize.obs, config.ppo.clip) == (0.9, 0.5, True, 0.3)
    assert (config.policy.activation, config.policy.encoder.kind, config.train.seed) == ("relu", "mlp", 7)
    assert config.policy.hidden == (4,)


def test_an_encoder_with_its_own_settings():
    assert tiny(encoder={"kind": "mlp", "layers": [7]}).config.policy.encoder.layers == (7,)


def test_wrong_settings_are_all_named():
    with pytest.raises(ConfigError) as caught:
        tiny(gamma=3, gae_lamda=0.9, **{"ppo.clip": -1})
    assert len(caught.value.problems) == 3
    assert any("did you mean 'gae_lambda'" in problem for problem in caught.value.problems)


def test_the_seed_decides_everything():
    one, same, other = (tiny(seed=seed).learn(64) for seed in (1, 1, 2))
    assert_same(state_of(one), state_of(same))
    assert not state_of(other)["policy"]["head.logits.weight"].equal(state_of(one)["policy"]["head.logits.weight"])


# Learning.


def test_learning_twice_goes_on():
    settings = {"lr_schedule": "constant", "clip_schedule": "constant"}
    twice, once = tiny(**settings).learn(64).learn(64), tiny(**settings).learn(128)
    assert_same(state_of(twice), state_of(once))
    assert twice.config.train.steps == 128


def test_without_a_number_the_configs_steps_are_added_each_time():
    agent = tiny(steps=64)
    assert [steps_of(agent.learn()) for _ in range(3)] == [64, 128, 192]


def test_no_steps_are_no_steps():
    agent = tiny().learn(32)
    before = state_of(agent)
    assert_same(state_of(agent.learn(0)), before)
    with pytest.raises(ConfigError, match=r"train\.steps"):
        tiny().learn(0)


def test_hooks_see_every_iteration():
    seen: list[int] = []

    class Watch:
        def after_iteration(self, report: IterationReport) -> None:
            seen.append(report.progress.step)

    tiny().learn(96, hooks=[Watch()])
    assert seen == [32, 64, 96]


def test_nothing_is_printed_or_written_unless_asked(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    tiny().learn(32)
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []


def test_a_run_directory_is_that_of_the_command_line(tmp_path):
    tiny(checkpoint_every=32, tensorboard=False).learn(96, run_dir=tmp_path)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["checkpoints", "config.yaml", "lock", "log.txt", "metrics.jsonl"]
    assert saved_steps(tmp_path) == [96, 64, 32]


def test_a_second_part_goes_on_in_the_same_directory(tmp_path):
    agent = tiny(tensorboard=False, eval_episodes=2).learn(64, run_dir=tmp_path)
    best = read_checkpoint(tmp_path / "best.safetensors")["best_score"]
    agent.learn(64, run_dir=tmp_path)
    assert [record["step"] for record in records(tmp_path)] == [32, 64, 96, 128]
    assert saved_steps(tmp_path) == [128, 64]
    scores = [record["eval/mean_reward"] for record in records(tmp_path) if "eval/mean_reward" in record]
    assert len(scores) == 2
    assert scores[0] == best
    assert read_checkpoint(tmp_path / "best.safetensors")["best_score"] == max(scores)


def test_a_directory_with_another_run_is_refused(tmp_path):
    tiny(tensorboard=False).learn(64, run_dir=tmp_path)
    before = (tmp_path / "config.yaml").read_text(), saved_steps(tmp_path)
    with pytest.raises(RunDirectoryError, match="already contains a run at step 64"):
        tiny(seed=5).learn(32, run_dir=tmp_path)
    with pytest.raises(RunDirectoryError, match="already contains a run"):
        tiny(seed=5).learn(32).learn(32, run_dir=tmp_path)
    assert ((tmp_path / "config.yaml").read_text(), saved_steps(tmp_path)) == before


def test_the_best_policy_of_a_run_is_told_where_the_run_continues(tmp_path):
    tiny(tensorboard=False, eval_episodes=2, eval_every=32).learn(32, run_dir=tmp_path).save(tmp_path / "early")
    PPO.load(RunDirectory(tmp_path).saved()[0]).learn(32, run_dir=tmp_path)
    (tmp_path / "early").replace(tmp_path / "best.safetensors")
    with pytest.raises(
        RunDirectoryError, match=r"this agent is at step 32 \(PPO\.load takes the best policy"
    ) as refused:
        PPO.load(tmp_path).learn(32, run_dir=tmp_path)
    PPO.load(str(refused.value).split("'")[1]).learn(32, run_dir=tmp_path)
    assert saved_steps(tmp_path)[0] == 96


def test_any_checkpoint_of_a_run_can_be_continued(tmp_path):
    """In another directory, or where a kill left the newest one, without the line that the kill prevented."""
    settings = {"tensorboard": False, "checkpoint_every": 32, "keep_checkpoints": 9}
    tiny(**settings).learn(128, run_dir=tmp_path / "run")
    saved = RunDirectory(tmp_path / "run").saved()
    end = read_checkpoint(saved[0])
    PPO.load(saved[2]).learn(64, run_dir=tmp_path / "new")
    assert_same(read_checkpoint(RunDirectory(tmp_path / "new").saved()[0])["policy"], end["policy"])
    assert [record["step"] for record in records(tmp_path / "new")] == [96, 128]

    whole = records(tmp_path / "run")
    saved[0].unlink()
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "run" / "metrics.jsonl").write_text("".join(lines[:2]) + lines[2][:30])
    PPO.load(saved[1]).learn(32, run_dir=tmp_path / "run")
    assert records(tmp_path / "run") == whole
    assert_same(read_checkpoint(RunDirectory(tmp_path / "run").saved()[0]), end)


# Interruptions.


class Interrupt:
    """A Ctrl-C in the middle of learning."""

    def after_iteration(self, report: IterationReport) -> None:
        if report.progress.iteration == 2:
            os.kill(os.getpid(), signal.SIGINT)


def test_an_interruption_finishes_the_iteration_and_reaches_the_caller(tmp_path):
    agent = tiny(tensorboard=False)
    with pytest.raises(KeyboardInterrupt):
        agent.learn(320, run_dir=tmp_path, hooks=[Interrupt()])
    assert steps_of(agent) == 64
    assert saved_steps(tmp_path) == [64]
    # And learning can go on.
    assert steps_of(agent.learn(32)) == 96


def test_a_real_signal_from_outside(tmp_path):
    agent = tiny()
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        agent.learn(100_000_000)
    assert time.monotonic() - began < 20
    assert steps_of(agent) % 32 == 0


def test_handlers_are_given_back():
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    tiny().learn(32)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_learning_outside_the_main_thread():
    agent = tiny()
    thread = threading.Thread(target=agent.learn, args=(32,))
    thread.start()
    thread.join()
    assert steps_of(agent) == 32


# Saving and loading.

CONSTANT = {"lr_schedule": "constant", "clip_schedule": "constant"}
ALL_NORMALIZED = {"obs": True, "reward": True, "returns": True}


def learn_from_file(path: Path, steps: int) -> None:
    PPO.load(path).learn(steps).save(path)


@pytest.mark.parametrize("env", ["CartPole-v1", "Pendulum-v1", "HalfCheetah-v5"])
def test_saved_and_loaded_in_a_new_process_is_as_if_nothing_happened(tmp_path, env):
    """S15 through the Python surface; 48 steps of a row are in the middle of most episodes."""
    settings = {**CONSTANT, "normalize": ALL_NORMALIZED, "eval_episodes": 0}
    path = tmp_path / "model.safetensors"
    tiny(env, **settings).learn(96).save(path)
    Process(learn_from_file, path, 96).wait().succeeded()
    whole = tiny(env, **settings).learn(192)
    restored = PPO.load(path)
    assert_same(state_of(restored), state_of(whole))


MADE_HERE = [name for name in preset_names() if name not in ("LunarLander-v3", "simple-spread", "Atari", "ALE/Pong-v5")]


@pytest.mark.parametrize("env", MADE_HERE)
def test_every_presets_env_goes_on_bit_for_bit(tmp_path, env):
    path = tmp_path / "model.safetensors"
    whole = tiny(env, **CONSTANT).learn(32)
    whole.save(path)
    restored = PPO.load(path).learn(64)
    assert_same(state_of(restored), state_of(whole.learn(64)))


def test_an_own_env_that_saves_its_state_goes_on_bit_for_bit(tmp_path):
    path = tmp_path / "model.safetensors"
    agent = tiny(SavingEnv, **CONSTANT).learn(32)
    agent.save(path)
    assert_same(state_of(PPO.load(path, SavingEnv).learn(64)), state_of(agent.learn(64)))


def test_an_own_env_that_does_not_goes_on_with_new_episodes(tmp_path, caplog):
    path = tmp_path / "model.safetensors"
    agent = tiny(CounterEnv).learn(32)
    agent.save(path)
    loaded = PPO.load(path, CounterEnv)
    assert_same(state_of(loaded)["policy"], state_of(agent)["policy"])
    assert_same(state_of(loaded)["gradient"], state_of(agent)["gradient"])
    assert "resumed at step 32 with new episodes" in caplog.text
    assert steps_of(loaded.learn(32)) == 64


def test_a_loaded_agent_acts_without_envs(tmp_path):
    path = tmp_path / "model.safetensors"
    agent = tiny(make_cart_pole, normalize={"obs": True}).learn(64)
    agent.save(path)
    loaded = PPO.load(path)
    obs = np.random.default_rng(0).normal(size=(20, 4))
    assert np.array_equal(loaded.predict(obs)[0], agent.predict(obs)[0])
    with pytest.raises(EnvError, match="unknown environment 'make_cart_pole'"):
        loaded.learn(32)
    assert steps_of(PPO.load(path, make_cart_pole).learn(32)) == 96


def test_a_loaded_agent_saved_again_is_the_same(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    tiny().learn(32).save(first)
    PPO.load(first).save(second)
    assert_same(read_checkpoint(second), read_checkpoint(first))


def test_an_untrained_agent_can_be_saved(tmp_path):
    agent = tiny(seed=4)
    agent.save(tmp_path / "new")
    assert_same(state_of(PPO.load(tmp_path / "new").learn(32)), state_of(agent.learn(32)))


def test_another_env_brings_only_the_env(tmp_path, caplog):
    """CartPole-v1 is a preset too; its settings must not replace those that the agent was trained with."""
    path = tmp_path / "model.safetensors"
    tiny(make_cart_pole, gamma=0.77, lr=0.1, hidden=3).learn(32).save(path)
    loaded = PPO.load(path, "CartPole-v1")
    assert loaded.config.env.id == "CartPole-v1"
    assert (loaded.config.ppo.gamma, loaded.config.optimizer.lr, loaded.config.policy.hidden) == (0.77, 0.1, (3,))
    assert loaded.config.rollout.num_envs == 2
    loaded.learn(32).save(path)
    assert "resumed at step 32 with new episodes" in caplog.text, "the old ones were another env's"
    assert steps_of(PPO.load(path)) == 64


def test_an_env_with_other_spaces_is_refused(tmp_path):
    path = tmp_path / "model.safetensors"
    tiny().save(path)
    loaded = PPO.load(path, "Pendulum-v1")
    with pytest.raises(EnvError, match="observation or action space of this env differs"):
        loaded.learn(32)
    with pytest.raises(EnvError, match="observation or action space of this env differs"):
        loaded.evaluate(1)
    with pytest.raises(EnvError, match="observation or action space of this env differs"):
        tiny().evaluate(1, env="Pendulum-v1")


def test_a_closed_agent_acts_saves_and_even_learns(tmp_path):
    path = tmp_path / "model.safetensors"
    agent, never_closed = tiny(**CONSTANT).learn(32), tiny(**CONSTANT).learn(32)
    agent.close()
    agent.close()
    assert agent.predict(np.zeros(4))[0] in (0, 1)
    agent.save(path)
    never_closed.learn(32)
    assert_same(state_of(PPO.load(path).learn(32)), state_of(never_closed))
    assert_same(state_of(agent.learn(32)), state_of(never_closed))


def test_an_agent_closed_before_it_learned_can_be_saved(tmp_path):
    agent = tiny()
    agent.close()
    agent.save(tmp_path / "model")
    assert PPO.load(tmp_path / "model").predict(np.zeros(4))[0] in (0, 1)
