"""From what a user has to a VecEnv."""

import logging
import sys

import gymnasium as gym
import mujoco
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from surefoot.envs.adapters import gymnasium_factory
from surefoot.envs.adapters.gymnasium_vector import GymnasiumVectorEnv
from surefoot.envs.engines.local import LocalEngine
from surefoot.envs.engines.native import NativeEngine
from surefoot.envs.make import fixed_envs, make_vec_env
from surefoot.envs.protocol import step_all
from surefoot.errors import ConfigError, EnvError
from surefoot.settings.config import EnvConfig, RolloutConfig
from tests.envs.tasks import CounterEnv, factories, opened
from tests.envs.teams import TeamEnv


@pytest.mark.parametrize(("engine", "kind"), [("auto", NativeEngine), ("native", NativeEngine), ("local", LocalEngine)])
def test_an_id_makes_as_many_envs_as_wanted(engine, kind):
    env = make_vec_env("Pendulum-v1", EnvConfig(), 3, seed=0, rollout=RolloutConfig(engine=engine))
    assert isinstance(env, kind)
    assert env.num_rows == 3
    assert opened(env).obs.shape == (3, 3)


def four_steps(env) -> tuple[list[bool], list[list[float]]]:
    """Truncations and observations."""
    slot = opened(env)
    flags, seen = [], []
    for _ in range(4):
        step_all(env, np.zeros((1, 1), dtype=np.float32), slot)
        flags.append(bool(slot.truncated[0]))
        seen.append(slot.obs[0].tolist())
    return flags, seen


def test_the_config_s_arguments_reach_the_env():
    config, local = EnvConfig(kwargs={"g": 3.5}, max_episode_steps=2), RolloutConfig(engine="local")
    env = make_vec_env("Pendulum-v1", config, 1, seed=0, rollout=local)
    assert env._shards[0]._envs[0].unwrapped.g == 3.5
    flags, seen = four_steps(env)
    assert flags == [False, True, False, True]
    native = make_vec_env("Pendulum-v1", config, 1, seed=0)
    assert isinstance(native, NativeEngine)
    assert four_steps(native) == (flags, seen)
    otherwise = make_vec_env("Pendulum-v1", EnvConfig(max_episode_steps=2), 1, seed=0)
    assert four_steps(otherwise)[1] != seen, "without the argument it moves otherwise"


def test_a_factory_makes_as_many_envs_as_wanted():
    env = make_vec_env(CounterEnv, EnvConfig(), 4, seed=0)
    assert env.num_rows == 4
    assert len({id(each) for each in env._shards[0]._envs}) == 4


def test_an_env_is_one_row():
    source = CounterEnv()
    env = make_vec_env(source, EnvConfig(), 8, seed=0)
    assert env.num_rows == fixed_envs(source) == 1
    assert env._shards[0]._envs == [source]


def test_a_vector_env_has_its_own_rows():
    source = SyncVectorEnv(factories(3), autoreset_mode=AutoresetMode.SAME_STEP)
    env = make_vec_env(source, EnvConfig(), 8, seed=0)
    assert isinstance(env, GymnasiumVectorEnv)
    assert env.num_rows == fixed_envs(source) == 3


@pytest.mark.parametrize("source", [TeamEnv, TeamEnv(), "pettingzoo:mpe2.simple_spread_v3"])
def test_parallel_envs_have_a_row_for_each_agent(source):
    env = make_vec_env(source, EnvConfig(), 4, seed=0)
    assert env.num_rows == (3 if isinstance(source, TeamEnv) else 12)
    assert "agent" in env.describe(2)
    env.close()


def test_a_pool_is_made_from_its_id():
    env = make_vec_env("envpool:CartPole-v1", EnvConfig(), 4, seed=0)
    assert opened(env).obs.shape == (4, 4)
    env.close()


@pytest.mark.parametrize(
    "source", [SyncVectorEnv([CounterEnv]), "envpool:CartPole-v1", CounterEnv(), TeamEnv()], ids=lambda s: str(type(s))
)
def test_what_cannot_be_moved_to_workers_is_refused(source):
    with pytest.raises(
        ConfigError, match=r"rollout\.engine: must be 'auto' or 'local', because .* \(got 'processes'\)"
    ):
        make_vec_env(source, EnvConfig(), 1, 0, RolloutConfig(engine="processes"))


@pytest.mark.parametrize("source", ["CartPole-v1", CounterEnv])
def test_ids_and_factories_have_any_number_of_rows(source):
    assert fixed_envs(source) is None


@pytest.mark.parametrize("is_vector", [False, True])
def test_truncation_as_termination_reaches_the_engine(is_vector):
    makers = factories(1, lengths=[1], endings=["truncated"])
    source = SyncVectorEnv(makers) if is_vector else makers[0]
    env = make_vec_env(source, EnvConfig(truncation_as_termination=True), 1, seed=0)
    slot = opened(env)
    step_all(env, np.zeros(1, dtype=np.int64), slot)
    assert slot.terminated.tolist() == [True]
    assert slot.truncated.tolist() == [False]


@pytest.mark.parametrize(
    ("unknown", "nearest"),
    [
        ("CartPole-v7", "CartPole-v1"),
        ("Cartpole-v1", "CartPole-v1"),
        ("HALFCHEETAH-V5", "HalfCheetah-v5"),
        ("half-cheetah-v5", "HalfCheetah-v5"),
        ("Walker-v5", "Walker2d-v5"),
    ],
)
def test_an_unknown_id_is_refused_with_the_nearest(unknown, nearest):
    with pytest.raises(EnvError, match=rf"^unknown environment '{unknown}'; did you mean '{nearest}'\?"):
        make_vec_env(unknown, EnvConfig(), 1, seed=0)
    assert nearest in gym.registry


def test_an_id_like_no_other_is_refused_without_one():
    with pytest.raises(EnvError, match=r"^unknown environment 'xyzzy' \('surefoot envs' lists the known ones\)$"):
        make_vec_env("xyzzy", EnvConfig(), 1, seed=0)


@pytest.mark.parametrize("env_id", ["no_such_module:Task-v0", "tests.envs.tasks:Task-v0"])
def test_an_unknown_module_or_task_in_it_is_refused(env_id):
    with pytest.raises(EnvError, match=rf"^environment '{env_id}' could not be created: .*(no_such_module|Task)"):
        make_vec_env(env_id, EnvConfig(), 1, seed=0)


@pytest.mark.parametrize("engine", ["auto", "local"])
@pytest.mark.parametrize("kwargs", [{"gravitation": 1}, {"max_episode_steps": 4}, {"disable_env_checker": False}])
def test_arguments_the_env_does_not_take_are_refused(kwargs, engine):
    config = EnvConfig(kwargs=kwargs, max_episode_steps=3)
    name = next(iter(kwargs))
    with pytest.raises(EnvError, match=rf"^environment 'CartPole-v1' does not accept env\.kwargs .*'{name}'"):
        make_vec_env("CartPole-v1", config, 1, 0, RolloutConfig(engine=engine))


def test_an_argument_s_bad_value_is_typed():
    config = EnvConfig(kwargs={"xml_file": "/no/such/model.xml"})
    with pytest.raises(EnvError, match=r"could not be created: .*/no/such/model\.xml"):
        make_vec_env("HalfCheetah-v5", config, 1, seed=0)


def test_what_mujoco_warns_of_goes_to_the_log_once(capfd, caplog, monkeypatch, tmp_path):
    """Making a HalfCheetah warns of a deprecated attribute in its model."""
    monkeypatch.chdir(tmp_path)
    gymnasium_factory._log_once.cache_clear()
    with caplog.at_level(logging.DEBUG, "surefoot"):
        make_vec_env("HalfCheetah-v5", EnvConfig(), 3, 0, RolloutConfig(engine="local")).close()
    warned = [record for record in caplog.records if "MuJoCo warning" in record.message]
    assert len(warned) == 1
    assert warned[0].levelno == logging.DEBUG
    assert "deprecated" in warned[0].message
    assert capfd.readouterr().err == ""
    assert list(tmp_path.iterdir()) == [], "no MUJOCO_LOG.TXT"


def test_your_own_handler_of_mujoco_s_warnings_is_kept():
    mine = [].append
    mujoco.set_mju_user_warning(mine)
    try:
        make_vec_env("HalfCheetah-v5", EnvConfig(), 1, seed=0).close()
        assert mujoco.get_mju_user_warning() is mine
        with pytest.raises(EnvError):
            make_vec_env("HalfCheetah-v5", EnvConfig(kwargs={"nonsense": 1}), 1, seed=0)
        assert mujoco.get_mju_user_warning() is mine
    finally:
        mujoco.set_mju_user_warning(None)


def test_a_missing_extra_is_named_as_ours(monkeypatch):
    for name in [name for name in sys.modules if name.startswith(("Box2D", "gymnasium.envs.box2d"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "Box2D", None)
    with pytest.raises(
        EnvError, match=r"'LunarLander-v3' could not be created: it requires Box2D; run `pip .*\[box2d\]"
    ):
        make_vec_env("LunarLander-v3", EnvConfig(), 1, seed=0)
