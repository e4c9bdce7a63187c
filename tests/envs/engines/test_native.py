"""The native engine is the local one, bit for bit, for every native env; and it says what it does not know."""

import numpy as np
import pytest

from surefoot.data.tree import tree_items
from surefoot.envs.blueprint import Blueprint
from surefoot.envs.engines import Engine
from surefoot.envs.engines.native import NativeEngine
from surefoot.envs.make import gymnasium_factory, make_vec_env
from surefoot.envs.native import native_ids
from surefoot.envs.protocol import Slot, VecEnv, new_slot, step_all
from surefoot.settings.config import EnvConfig, RolloutConfig
from tests.envs.tasks import CounterEnv

SEED = 5
ROWS = 3
FIELDS = ("reward", "terminated", "truncated", "valid")


def make(engine: str, env_id: str, rows: int = ROWS, workers: int = 2, **config) -> VecEnv:
    return make_vec_env(
        env_id, EnvConfig(id=env_id, **config), rows, SEED, RolloutConfig(engine=engine, workers=workers)
    )


def fresh(env: VecEnv) -> Slot:
    return new_slot(env.num_rows, env.obs_spec, env.mask_size)


def random_actions(env: VecEnv, slot: Slot, random: np.random.Generator):
    spec = env.action_spec
    if spec.kind == "box":
        low, high = spec.bounds()
        return random.uniform(low, high, (env.num_rows, *spec.shape)).astype(np.float32)
    if slot.action_mask is not None:
        return np.array([random.choice(np.flatnonzero(mask)) for mask in slot.action_mask]) + spec.start[0]
    return random.integers(0, spec.sizes[0], env.num_rows)


def test_envs_of_a_part_are_named_by_their_numbers_in_the_whole_run():
    whole = make("native", "CartPole-v1", 8)
    factory = gymnasium_factory("CartPole-v1", EnvConfig(id="CartPole-v1"))
    part = NativeEngine(Blueprint([factory] * 3, SEED, first_env=5), RolloutConfig(engine="native", workers=1))
    assert [part.describe(row) for row in range(3)] == [whole.describe(row) for row in range(5, 8)]


def assert_equal(one: Slot, other: Slot, where: str) -> None:
    for (_, ours), (_, theirs) in zip(tree_items(one.obs), tree_items(other.obs), strict=True):
        assert np.array_equal(ours, theirs), f"obs at {where}"
    for field in FIELDS:
        assert np.array_equal(getattr(one, field), getattr(other, field)), f"{field} at {where}"
    if one.action_mask is not None:
        assert np.array_equal(one.action_mask, other.action_mask), f"mask at {where}"


@pytest.mark.parametrize("env_id", native_ids())
def test_what_local_gives(env_id):
    envs = [make(engine, env_id, max_episode_steps=17) for engine in ("native", "local")]
    native, local = envs
    assert isinstance(native, NativeEngine)
    assert (native.obs_spec, native.action_spec, native.mask_size) == (
        local.obs_spec,
        local.action_spec,
        local.mask_size,
    )
    slots = [fresh(env) for env in envs]
    for env, slot in zip(envs, slots, strict=True):
        env.reset(slot, 7)
    assert [native.describe(row) for row in range(ROWS)] == [local.describe(row) for row in range(ROWS)]
    assert_equal(*slots, "reset")
    random, ended = np.random.default_rng(3), 0
    for step in range(40):
        actions = random_actions(native, slots[0], random)
        for env, slot in zip(envs, slots, strict=True):
            step_all(env, actions, slot)
        assert_equal(*slots, f"step {step}")
        for row in np.flatnonzero(slots[0].ended):
            ended += 1
            for (_, ours), (_, theirs) in zip(tree_items(native.final_obs), tree_items(local.final_obs), strict=True):
                assert np.array_equal(ours[row], theirs[row]), f"final obs at step {step}"
    assert ended >= 2 * ROWS
    for env in envs:
        env.close()


@pytest.mark.parametrize("env_id", native_ids())
def test_a_saved_state_goes_on_in_another_engine_in_the_middle_of_episodes(env_id):
    one, other = (make("native", env_id, max_episode_steps=30) for _ in range(2))
    slots = [fresh(env) for env in (one, other)]
    random = np.random.default_rng(4)
    one.reset(slots[0])
    for _ in range(11):
        step_all(one, random_actions(one, slots[0], random), slots[0])
    other.reset(slots[1], 99)
    state = one.save_state()
    assert state is not None
    other.load_state(state)
    if slots[0].action_mask is not None:
        slots[1].action_mask[:] = slots[0].action_mask
    for step in range(60):
        actions = random_actions(one, slots[0], random)
        for env, slot in zip((one, other), slots, strict=True):
            step_all(env, actions, slot)
        assert_equal(*slots, f"step {step}")


def test_time_limits_count_as_terminations_if_asked():
    env = make("native", "Pendulum-v1", max_episode_steps=4, truncation_as_termination=True)
    slot = fresh(env)
    env.reset(slot)
    for step in range(4):
        step_all(env, np.zeros((ROWS, 1), np.float32), slot)
        assert slot.terminated.all() == (step == 3)
        assert not slot.truncated.any()


@pytest.mark.parametrize(
    ("source", "config", "reason"),
    [
        ("Blackjack-v1", {}, "'Blackjack-v1' has no native implementation"),
        (CounterEnv, {}, "not an env object or a factory"),
        ("CartPole-v1", {"kwargs": {"render_mode": "rgb_array"}}, "has no native option 'render_mode'"),
    ],
)
@pytest.mark.parametrize("engine", ["auto", "native"])
def test_what_the_core_does_not_know_is_stepped_here_and_the_engine_says_why(engine, source, config, reason):
    env = make_vec_env(source, EnvConfig(**config), 2, SEED, RolloutConfig(engine=engine))
    assert isinstance(env, Engine)
    assert not isinstance(env, NativeEngine)
    assert reason in env.why_not_native
    env.close()
