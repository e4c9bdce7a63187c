"""The limit visits the states of the rollout, and leaves the engine where the rollout left it."""

from typing import Any

import numpy as np
import pytest

from surefoot.benchmark.configured import Collecting, Replaying, env_actions
from surefoot.envs.engines.native import NativeEngine
from surefoot.errors import NativeError
from surefoot.settings.config import Config
from surefoot.settings.layers import build_config

EPISODE_LENGTH = 4
"""Where a saved row counts its steps, which bare dynamics do not; the four before it are its generator."""


def config(env_id: str, **rollout: Any) -> Config:
    sizes = {"num_envs": 4, "num_steps": 32, "engine": "native", **rollout}
    policy = {"hidden": [4], "memory": "gru" if "NoVel" in env_id else "none"}
    return build_config({"env": {"id": env_id}, "rollout": sizes, "ppo": {"batch_size": 32}, "policy": policy})


def engine_of(subject: Collecting | Replaying) -> Any:
    assert isinstance(subject._env, NativeEngine)
    return subject._env.core


@pytest.mark.parametrize("env_id", ["CartPole-v1", "Pendulum-v1", "Hopper-v5", "CartPoleNoVel-v1"])
def test_it_replays_what_the_native_engine_collected(env_id: str) -> None:
    """Both end in the same state after the same rollouts, whose episodes end in the middle."""
    collecting, replaying = Collecting(config(env_id)), Replaying(config(env_id))
    try:
        collected, replayed = collecting.run(3), replaying.run(3)
        assert (collected.steps, replayed.steps) == (3 * 128, 3 * 128)
        assert replayed.rollout_s > 0
        assert replayed.learn_s == 0
        np.testing.assert_array_equal(engine_of(collecting).save(), engine_of(replaying).save())
    finally:
        collecting.close()
        replaying.close()


@pytest.mark.parametrize("env_id", ["CartPole-v1", "Hopper-v5"])
def test_the_replay_itself_ends_where_the_rollout_did(env_id: str) -> None:
    """So the timed steps were those of the rollout: same actions, same resets, same random numbers."""
    subject = Replaying(config(env_id))
    try:
        engine, trainer = engine_of(subject), subject._trainer
        before = engine.save()
        rollout = trainer.collector.collect(trainer.policy)
        after = engine.save()
        ended = (rollout.terminated | rollout.truncated).numpy()
        assert ended.any()
        engine.load(before)
        engine.replay(env_actions(rollout, trainer.policy), ended)
        found, expected = (np.delete(state.view(np.int64), EPISODE_LENGTH, axis=1) for state in (engine.save(), after))
        np.testing.assert_array_equal(found, expected)
    finally:
        subject.close()


def test_figures_under_the_name_native_are_native() -> None:
    """An env that the core does not know would be stepped by another engine; the benchmark refuses that."""
    with pytest.raises(NativeError, match=r"not native: .* has no native implementation"):
        Replaying(config("tests.benchmark.odd_envs:Fatal-v0"))
