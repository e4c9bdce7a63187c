"""`open_engine`: which envs have a native counterpart, with which arguments, and how many fit."""

import math
import os
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from surefoot.envs import native
from surefoot.envs.engines.native import NativeEngine
from surefoot.envs.make import make_vec_env
from surefoot.envs.protocol import new_slot, step_all
from surefoot.errors import ConfigError, EnvError
from surefoot.machine.ram import free_addresses
from surefoot.native import core
from surefoot.settings.config import EnvConfig, RolloutConfig
from tests.cli.processes import Process, with_little_memory

ASSETS = str(Path(gym.__file__).parent / "envs" / "mujoco" / "assets")


def opened(env_id, engine="auto", **kwargs):
    return make_vec_env(env_id, EnvConfig(kwargs=kwargs), 2, 0, RolloutConfig(engine=engine))


def truncations(env, steps=20):
    slot = new_slot(env.num_rows, env.obs_spec, env.mask_size)
    env.reset(slot)
    seen = []
    for _ in range(steps):
        step_all(env, np.zeros((env.num_rows, *env.action_spec.shape), np.float32), slot)
        seen.append(slot.truncated.tolist())
    return seen


def test_more_envs_than_fit_are_refused_before_they_are_made():
    wanted = (
        r"^rollout\.num_envs: 10000000 envs of 'Humanoid-v5' take [0-9.]+ TB of memory, but only .* are free; lower"
    )
    with pytest.raises(ConfigError, match=wanted):
        native.make("Humanoid-v5", 10**7)
    with pytest.raises(ConfigError, match=wanted):
        make_vec_env("Humanoid-v5", EnvConfig(), 10**7, 0, RolloutConfig(engine="native"))


def test_a_limit_on_addresses_counts_what_is_asked_for():
    finished = Process(with_little_memory, 400, _make_more_than_there_are_addresses_for).wait()
    assert finished.code == 0, finished.err
    assert "64 envs of 'Humanoid-v5' take 952 MB of address space, but only" in finished.out


def _make_more_than_there_are_addresses_for():
    assert free_addresses() <= 400 * 2**20
    with pytest.raises(ConfigError) as refused:
        native.make("Humanoid-v5", 64)
    native.make("Humanoid-v5", 4, threads=1).close()
    os.write(1, str(refused.value).encode())


def test_what_envs_fill_is_predicted():
    finished = Process(_fill_memory).wait()  # in a process where no memory lies around to be used again
    assert finished.code == 0, finished.err


def _fill_memory():
    predicted, reserved = core().footprint("Ant-v5", {"assets": ASSETS})
    native.make("Ant-v5", threads=1).close()
    before = resident_bytes()
    envs = native.make("Ant-v5", 400, threads=1)
    envs.reset(seed=0)
    filled = (resident_bytes() - before) / 400
    assert 0.7 < predicted / filled < 1.3, (predicted, filled)
    assert reserved > predicted


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_gymnasium_s_own_ids_with_its_name_in_front():
    ours, theirs = opened("gymnasium:Pendulum-v1"), opened("gymnasium:Pendulum-v1", "local")
    assert isinstance(ours, NativeEngine)
    slots = [new_slot(2, env.obs_spec, 0) for env in (ours, theirs)]
    for env, slot in zip((ours, theirs), slots, strict=True):
        env.reset(slot)
    assert np.array_equal(slots[0].obs, slots[1].obs)
    assert native.make("gymnasium:CartPole-v1").spec.id == "CartPole-v1"


def test_no_other_module_s_ids_are_taken_for_native_ones():
    env = opened("gymnasium.envs:CartPole-v1")
    assert not isinstance(env, NativeEngine)
    assert "'gymnasium.envs:CartPole-v1' has no native implementation" in env.why_not_native
    env.close()


@pytest.mark.parametrize("limit", [5, 1, True, -1, None])
def test_a_time_limit_among_the_arguments_is_gymnasium_s(limit):
    ours, theirs = (opened("Pendulum-v1", engine, max_episode_steps=limit) for engine in ("native", "local"))
    assert isinstance(ours, NativeEngine)
    assert truncations(ours) == truncations(theirs)
    ours.close()
    theirs.close()


@pytest.mark.parametrize(
    ("env_id", "kwargs", "message"),
    [
        ("Pendulum-v1", {"max_episode_steps": 0}, "max_episode_steps"),
        ("Pendulum-v1", {"max_episode_steps": 5.0}, "max_episode_steps"),
        ("Pendulum-v1", {"nonsense": 1}, "nonsense"),
        ("Pendulum-v1", {"disable_env_checker": True}, "disable_env_checker"),
        ("Probe-v0", {"action": ["box"]}, "action"),
        ("Probe-v0", {"action": "nonsense"}, "action must be one of"),
        ("Hopper-v5", {"frame_skip": "a"}, "frame_skip"),
        ("Hopper-v5", {"assets": "elsewhere"}, "assets"),
    ],
)
def test_arguments_that_gymnasium_refuses_are_typed_errors(env_id, kwargs, message):
    for engine in ("native", "local"):
        with pytest.raises(EnvError, match=message):
            opened(env_id, engine, **kwargs)


def test_a_time_limit_that_is_given_twice():
    config = EnvConfig(kwargs={"max_episode_steps": 5}, max_episode_steps=5)
    with pytest.raises(EnvError, match=r"does not accept env\.kwargs .*max_episode_steps"):
        make_vec_env("Pendulum-v1", config, 2, 0, RolloutConfig(engine="native"))


@pytest.mark.parametrize(
    "kwargs",
    [
        {"frame_skip": 2.0},  # Gymnasium's raises in its first step
        {"healthy_z_range": ["a", "b"]},
        {"healthy_z_range": [[0.7, math.inf]]},
        {"healthy_z_range": 5},
        {"terminate_when_unhealthy": "no"},  # which means yes
    ],
)
def test_arguments_of_other_kinds_are_left_to_gymnasium(kwargs):
    env = opened("Hopper-v5", "native", **kwargs)
    assert not isinstance(env, NativeEngine)
    assert next(iter(kwargs)) in env.why_not_native
    env.close()
