"""Metrics and parameters in engines: the same numbers wherever the envs are stepped, and after a worker is lost."""

import os
import signal
from functools import partial
from typing import Any

import numpy as np
import pytest

from surefoot.envs.blueprint import Blueprint
from surefoot.envs.engines import Engine, engines
from surefoot.envs.make import make_vec_env
from surefoot.envs.protocol import Slot, VecEnv, slot_for, step_all
from surefoot.errors import EnvError
from surefoot.settings.config import EnvConfig, RolloutConfig
from tests.envs.engines.test_processes import children
from tests.envs.measured import METRICS, MeasuredEnv, MeasuredTeam
from tests.envs.tasks import factories
from tests.envs.teams import TEAM

PLACES = [("local", 1, 2), ("processes", 2, 1), ("processes", 2, 2)]


def made(name: str, workers: int, groups: int, makers: list[Any], metrics: Any = None) -> Engine:
    config = RolloutConfig(engine=name, workers=workers, groups=groups)
    return engines[name](Blueprint(makers, 3, metrics=metrics or {}), config)


def opened(env: VecEnv) -> Slot:
    slot = slot_for(env)
    env.reset(slot)
    return slot


def run(env: VecEnv, slot: Slot, count: int) -> list[list[np.ndarray]]:
    seen = []
    for _ in range(count):
        step_all(env, np.zeros(env.num_rows, dtype=np.int64), slot)
        seen.append([slot.obs.copy(), slot.reward.copy(), slot.metrics.copy(), slot.valid.copy()])
    return seen


def assert_same(ours: list[list[np.ndarray]], reference: list[list[np.ndarray]]) -> None:
    for step, expected in zip(ours, reference, strict=True):
        for value, wanted in zip(step, expected, strict=True):
            np.testing.assert_array_equal(value, wanted)


@pytest.mark.parametrize(("name", "workers", "groups"), PLACES)
def test_the_same_numbers_in_every_engine(name, workers, groups):
    wind = np.arange(5.0)
    alone = Blueprint(factories(5, MeasuredEnv), 3, metrics={"pace": "sum"}).make(range(5))
    with made(name, workers, groups, factories(5, MeasuredEnv), {"pace": "sum"}) as env:
        assert env.metrics == alone.metrics == METRICS | {"pace": "sum"}
        assert {key: value.tolist() for key, value in env.parameters.items()} == {"wind": 0.5, "slope": [0, 1]}
        slot, own = opened(env), opened(alone)
        assert_same(run(env, slot, 4), run(alone, own, 4))
        for each in (env, alone):
            each.set_parameters({"wind": wind, "slope": [2.0, 3.0]})
        ours = run(env, slot, 6)
        assert_same(ours, run(alone, own, 6))
        assert ours[-1][2][3, 2] - ours[-1][2][0, 2] == 3, "each row has its own wind"
        state = env.save_state()
        assert state is not None
        assert state["parameters"]["wind"].tolist() == wind.tolist()
        following = run(env, slot, 6)
    with made(name, workers, groups, factories(5, MeasuredEnv), {"pace": "sum"}) as again:
        slot = opened(again)
        again.load_state(state)
        assert again.parameter_values.keys() == {"wind", "slope"}
        assert_same([step[1:] for step in run(again, slot, 6)], [step[1:] for step in following])


@pytest.mark.parametrize(("name", "workers", "groups"), PLACES)
def test_agents_in_every_engine(name, workers, groups):
    makers = [partial(MeasuredTeam, index, TEAM) for index in range(3)]
    alone, bonus = Blueprint(makers, 3).make(range(3)), np.repeat([1.0, 2.0, 3.0], 3)
    with made(name, workers, groups, makers) as env:
        for each in (env, alone):
            each.set_parameters({"bonus": bonus})
        assert_same(run(env, opened(env), 9), run(alone, opened(alone), 9))
        with pytest.raises(EnvError, match="differs between agents of one env"):
            env.set_parameters({"bonus": np.arange(9)})


@pytest.mark.parametrize("groups", [1, 2])
def test_a_killed_worker_gets_its_parameters_again(groups):
    before = children(os.getpid())
    with made("processes", 2, groups, factories(4, MeasuredEnv, lengths=(9,))) as env:
        slot = opened(env)
        env.set_parameters({"wind": [1, 2, 3, 4]})
        run(env, slot, 1)
        for pid in children(os.getpid()) - before:
            os.kill(pid, signal.SIGKILL)
        ((_, _, lost, valid), (_, _, metrics, _)) = run(env, slot, 2)
        assert env.restarts == 2
        assert not valid.any()
        assert np.isnan(lost).all()
        assert metrics[:, 2].tolist() == [1 + 1 + 10, 1 + 2 + 10, 1 + 3 + 10, 1 + 4 + 10]


def test_a_worker_that_died_before_parameters_are_set_gets_the_new_ones():
    before = children(os.getpid())
    with made("processes", 2, 1, factories(4, MeasuredEnv, lengths=(9,))) as env:
        slot = opened(env)
        for pid in children(os.getpid()) - before:
            os.kill(pid, signal.SIGKILL)
        env.set_parameters({"wind": [1, 2, 3, 4]})
        assert env.restarts == 2
        *_, (_, _, metrics, valid) = run(env, slot, 2)
        assert valid.all()
        assert metrics[:, 2].tolist() == [12, 13, 14, 15]


@pytest.mark.parametrize(("name", "workers", "groups"), PLACES)
def test_what_is_wrong_is_refused_before_any_env_hears_of_it(name, workers, groups):
    with made(name, workers, groups, factories(4, MeasuredEnv)) as env:
        slot = opened(env)
        for wrong in ({"wind": 1, "rain": 1}, {"wind": [1, 2]}, {"slope": [1, 2], "wind": np.nan}):
            with pytest.raises(EnvError, match=r"'(rain|wind)'"):
                env.set_parameters(wrong)
        assert env.parameter_values == {}
        (_, _, metrics, _), *_ = run(env, slot, 1)
        assert metrics[:, 2].tolist() == [11.5] * 4
        with pytest.raises(
            EnvError, match=r"^env 2 \(seed \d+\) raised an exception in set_parameters: ValueError: no wind of 13$"
        ):
            env.set_parameters({"wind": [1, 2, 13, 4]})
        assert env.restarts == 0
        assert env.parameter_values == {}
        (_, _, metrics, _), *_ = run(env, slot, 1)
        assert metrics[:, 2].tolist() == [12.5] * 4, "no env keeps a value of the refused set"
        env.set_parameters({"wind": [1, 2, 3, 4]})
        with pytest.raises(EnvError, match="no wind of 13"):
            env.set_parameters({"wind": [5, 6, 7, 13], "slope": [1, 1]})
        (_, _, metrics, _), *_ = run(env, slot, 1)
        assert metrics[:, 2].tolist() == [14, 15, 16, 17]


class Odd(MeasuredEnv):
    metrics = {"score": "last"}


@pytest.mark.parametrize(("name", "workers", "groups"), PLACES)
def test_envs_that_declare_differently_are_refused(name, workers, groups):
    makers = [partial(MeasuredEnv, index=0), partial(Odd, index=1)]
    with pytest.raises(EnvError, match=r"declares the metrics \[\('score', 'last'\)\]"):
        made(name, workers, groups, makers)


def test_native_envs_declare_none_yet():
    env = make_vec_env("CartPole-v1", EnvConfig(), 2, seed=1)
    try:
        assert (env.metrics, env.parameters, env.parameter_values) == ({}, {}, {})
        env.set_parameters({})
        with pytest.raises(EnvError, match="unknown parameter 'gravity'; these envs declare none"):
            env.set_parameters({"gravity": 1})
    finally:
        env.close()
