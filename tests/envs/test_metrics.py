"""Metrics out of infos: what an env may declare, and the numbers of every step in every kind of env."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit

from surefoot.envs.adapters.gymnasium_envs import GymnasiumEnvs
from surefoot.envs.adapters.gymnasium_vector import GymnasiumVectorEnv
from surefoot.envs.adapters.pettingzoo_parallel import PettingZooEnvs
from surefoot.envs.make import make_vec_env
from surefoot.envs.protocol import VecEnv, new_slot, slot_for
from surefoot.envs.protocol.metrics import MetricReader, declared_metrics
from surefoot.errors import EnvError
from surefoot.settings.config import EnvConfig
from tests.envs.measured import METRICS, MeasuredEnv, MeasuredTeam
from tests.envs.tasks import CounterEnv, factories
from tests.envs.teams import TEAM

NO = math.nan


def steps_of(env: VecEnv, count: int) -> list[Any]:
    """Copies of every step's slot, under actions of zero."""
    slot, seen = slot_for(env), []
    env.reset(slot)
    for _ in range(count):
        env.send(0, np.zeros(env.num_rows, dtype=np.int64))
        env.receive(0, slot)
        seen.append((slot.valid.copy(), slot.metrics.copy()))
    return seen


def test_every_step_has_its_numbers_and_nan_for_none():
    env = GymnasiumEnvs(factories(2, MeasuredEnv), seed=3)
    assert env.metrics == METRICS
    rows = [metrics[1].tolist() for _, metrics in steps_of(env, 4)]  # episodes of 3 steps and of 1, default parameters
    expected = [[NO, 1, 11.5], [NO, NO, 12.5], [False, 3, 13.5], [True, 1, 11.5]]
    np.testing.assert_array_equal(rows, expected)


def test_wrappers_hide_nothing():
    env = GymnasiumEnvs([lambda: TimeLimit(MeasuredEnv(), 2)], seed=3)
    assert (env.metrics, list(env.parameters)) == (METRICS, ["wind", "slope"])


def test_a_setting_picks_keys_of_envs_that_declare_nothing():
    config = EnvConfig(metrics={"reward_ctrl": "sum", "x_position": "last"})
    env = make_vec_env("HalfCheetah-v5", config, 2, seed=1)
    try:
        assert type(env).name == "local"
        assert "env.metrics asks for reward_ctrl, x_position" in env.why_not_native
        assert env.metrics == config.metrics | {"success_rate": "last"}
        slot = slot_for(env)
        env.reset(slot)
        env.send(0, np.ones((2, 6), dtype=np.float32))
        env.receive(0, slot)
        np.testing.assert_allclose(slot.metrics[:, 0], -0.6, rtol=1e-6)
        assert np.isfinite(slot.metrics[:, 1]).all()
    finally:
        env.close()


def test_a_setting_adds_to_what_an_env_declares():
    env = GymnasiumEnvs(factories(1, MeasuredEnv), seed=3, metrics={"score": "mean", "more": "sum"})
    assert env.metrics == METRICS | {"score": "mean", "more": "sum"}


def test_a_slot_without_columns_gets_none():
    env = GymnasiumEnvs(factories(1, MeasuredEnv), seed=3)
    slot = new_slot(1, env.obs_spec, 0)
    env.reset(slot)
    env.step(np.zeros(1, dtype=np.int64), slot)
    assert slot.metrics.shape == (1, 0)


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (["score"], "must be a dict from names to summaries"),
        ({"": "last"}, "declares the metric ''; names start with a letter"),
        ({"-score": "last"}, "declares the metric '-score'"),
        ({"a b": "last"}, "declares the metric 'a b'"),
        ({3: "last"}, "declares the metric 3"),
        ({"score": "max"}, "'score' with the summary 'max'; use one of last, mean, sum"),
        ({"mean_reward": "last"}, "a name that evaluations already use"),
    ],
)
def test_declarations_that_are_refused(declared, message):
    with pytest.raises(EnvError, match=message) as caught:
        declared_metrics(declared, {}, "env 4")
    assert str(caught.value).startswith("env 4")


def test_names_with_groups_and_no_declaration_are_fine():
    assert declared_metrics(None, {}, "env 0") == {}
    assert declared_metrics({"reward/forward_x-1.5": "sum"}, {}, "env 0") == {"reward/forward_x-1.5": "sum"}


def test_envs_that_declare_differently_are_refused():
    class Other(MeasuredEnv):
        metrics = {"score": "last"}

    with pytest.raises(EnvError, match=r"env 3 declares the metrics \[\('score', 'last'\)\], but the first env"):
        GymnasiumEnvs([partial(MeasuredEnv, index=0), partial(Other, index=1)], seed=3, first_env=2)


BAD = {"text": "much", "list": [1, 2], "uneven": [[1], [1, 2]], "infinite": math.inf, "huge": 1e300}


@pytest.mark.parametrize("kind", BAD)
def test_what_is_not_a_number_is_refused_by_env_and_metric(kind):
    target = np.zeros((4, 1), np.float32)
    with pytest.raises(EnvError, match=r"^env 2 here: the metric 'score'"):
        MetricReader({"score": "last"}).read({"score": BAD[kind]}, target, 2, lambda row: f"env {row} here")
    batch = np.array([0.0, 1.0, None, 3.0], dtype=object)
    batch[2] = BAD[kind]
    with pytest.raises(EnvError, match=r"^env 2 here: the metric 'score'"):
        MetricReader({"score": "last"}).read_batch(
            {"score": batch}, target, np.ones(4, dtype=bool), lambda row: f"env {row} here"
        )


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2), np.int64(2), np.array([2.0]), np.array(2)])
def test_numbers_of_any_type_are_read(value):
    target = np.zeros((1, 2), np.float32)
    MetricReader({"score": "last", "won": "last"}).read({"score": value, "won": np.True_}, target, 0, str)
    assert target.tolist() == [[2, 1]]


def test_nan_and_none_are_no_value():
    target = np.zeros((1, 2), np.float32)
    MetricReader({"score": "last", "won": "last"}).read({"score": math.nan, "won": None}, target, 0, str)
    assert np.isnan(target).all()


VECTORS: dict[str, Callable[..., Any]] = {"sync": SyncVectorEnv, "async": AsyncVectorEnv}


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("kind", VECTORS)
def test_vector_envs_report_the_same_numbers_in_every_mode(kind, mode):
    env = GymnasiumVectorEnv(VECTORS[kind](factories(2, MeasuredEnv), autoreset_mode=mode), seed=3)
    assert (env.metrics, env.parameters) == (METRICS, {})
    try:
        seen = steps_of(env, 12)
    finally:
        env.close()
    for row in (0, 1):
        found = [metrics[row] for valid, metrics in seen if valid[row]][:8]
        alone = [metrics[row] for _, metrics in steps_of(GymnasiumEnvs(factories(2, MeasuredEnv), seed=3), 8)]
        np.testing.assert_array_equal(found, alone)
        assert all(np.isnan(metrics[row]).all() for valid, metrics in seen if not valid[row])


def test_vector_envs_without_metrics_have_success_alone_but_a_setting_can_add_some():
    plain = GymnasiumVectorEnv(SyncVectorEnv(factories(2, CounterEnv)), seed=3)
    assert plain.metrics == {"success_rate": "last"}, "which needs no declaration"
    with pytest.raises(EnvError, match="unknown parameter 'wind'; these envs declare none"):
        plain.set_parameters({"wind": 1})
    chosen = make_vec_env(gym.make_vec("HalfCheetah-v5", num_envs=2), EnvConfig(metrics={"reward_ctrl": "sum"}), 2, 1)
    (_, first), *_ = _cheetah_steps(chosen)
    assert np.isfinite(first[:, 0]).all()


def _cheetah_steps(env: VecEnv) -> list[Any]:
    slot = slot_for(env)
    env.reset(slot)
    env.send(0, np.ones((2, 6), dtype=np.float32))
    env.receive(0, slot)
    env.close()
    return [(slot.valid, slot.metrics)]


def test_envpool_infos_can_be_picked():
    pytest.importorskip("envpool")
    env = make_vec_env("envpool:CartPole-v1", EnvConfig(metrics={"elapsed_step": "last", "nothing": "mean"}), 3, seed=1)
    try:
        seen = steps_of(env, 3)
    finally:
        env.close()
    assert [metrics[:, 0].tolist() for _, metrics in seen] == [[1, 1, 1], [2, 2, 2], [3, 3, 3]]
    assert all(np.isnan(metrics[:, 1]).all() for _, metrics in seen)


def test_agents_have_numbers_of_their_own_and_the_dead_have_none():
    makers = [partial(MeasuredTeam, index, TEAM) for index in range(2)]
    env = PettingZooEnvs(makers, 3)
    assert env.metrics == {"pay": "sum", "place": "last"}
    env.set_parameters({"bonus": [1, 1, 1, 2, 2, 2]})
    slot = slot_for(env)
    env.reset(slot)
    for _ in range(12):
        env.send(0, np.zeros(6, dtype=np.int64))
        env.receive(0, slot)
        pay = np.where(slot.valid, slot.reward + np.repeat([1, 2], 3), NO)
        np.testing.assert_array_equal(slot.metrics[:, 0], pay.astype(np.float32))
        np.testing.assert_array_equal(slot.metrics[:, 1], np.where(slot.valid, [0, 1, 2] * 2, NO))
