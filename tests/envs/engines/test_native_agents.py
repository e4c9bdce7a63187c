"""Two agents of one native env against its PettingZoo twin: the same rows, whoever is out of the game."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from surefoot.compose import Specs, build_collector, build_env, build_policy
from surefoot.core.config import EnvConfig, RolloutConfig
from surefoot.core.errors import EnvError, NativeError
from surefoot.core.layers import build_config
from surefoot.envs import native
from surefoot.envs.engines.native import NativeEngine
from surefoot.envs.make import make_vec_env
from surefoot.envs.protocol import slot_for, step_all
from surefoot.native.building import build
from surefoot.verification.contract import random_actions

EXAMPLES = Path(__file__).parents[3] / "docs/extend/examples"
ENVS = 5
pytestmark = pytest.mark.xdist_group("duel")


@pytest.fixture(scope="module")
def duel(tmp_path_factory):
    """The library, with its twin beside it."""
    folder = tmp_path_factory.mktemp("duel")
    for name in ("duel.cpp", "duel.py"):
        shutil.copy(EXAMPLES / name, folder)
    return str(build(folder / "duel.cpp"))


@pytest.fixture
def opened(duel):
    def open_with(engine, **config):
        return make_vec_env(duel, EnvConfig(**config), ENVS, 3, RolloutConfig(engine=engine))

    return open_with


def fresh(env):
    slot = slot_for(env)
    env.reset(slot, 7)
    return slot


def step_both(pair, slots, generator):
    actions = random_actions(generator, pair[0].action_spec, slots[0])
    for env, slot in zip(pair, slots, strict=True):
        step_all(env, actions, slot)
    for field in ("obs", "reward", "terminated", "truncated", "valid", "action_mask"):
        assert np.array_equal(getattr(slots[0], field), getattr(slots[1], field)), field
    assert np.array_equal(slots[0].metrics, slots[1].metrics, equal_nan=True)


@pytest.mark.parametrize("config", [{}, {"max_episode_steps": 7}, {"truncation_as_termination": True}])
def test_agents_are_stepped_as_the_pettingzoo_adapter_steps_them(opened, config):
    pair = ours, theirs = opened("native", **config), opened("local", **config)
    assert isinstance(ours, NativeEngine)
    assert (ours.obs_spec, ours.action_spec, ours.mask_size) == (theirs.obs_spec, theirs.action_spec, theirs.mask_size)
    slots = [fresh(env) for env in pair]
    assert np.array_equal(slots[0].obs, slots[1].obs)
    generator, invalid, ended = np.random.default_rng(1), 0, np.zeros(2, int)
    for _ in range(150):
        step_both(pair, slots, generator)
        invalid += int((~slots[0].valid).sum())
        ended += [slots[0].terminated.sum(), slots[0].truncated.sum()]
        over = slots[0].ended
        assert np.array_equal(ours.final_obs[over], theirs.final_obs[over])
    assert invalid > 0
    assert (ended > 0).tolist() == [True, "max_episode_steps" in config]


def test_a_saved_state_knows_who_is_out(opened):
    pair = one, other = opened("native"), opened("native")
    slots, generator = [fresh(env) for env in pair], np.random.default_rng(2)
    while slots[0].valid.all():
        step_all(one, random_actions(generator, one.action_spec, slots[0]), slots[0])
    other.load_state(one.save_state())
    for _ in range(60):
        step_both(pair, slots, generator)


def test_parameters_change_what_happens_and_are_saved(opened):
    pair = ours, theirs = opened("native"), opened("local")
    assert ours.metrics == theirs.metrics
    assert {name: value.tolist() for name, value in ours.parameters.items()} == {"damage": 1.0, "handicap": [0.0, 0.0]}
    per_row = np.repeat(np.arange(ENVS, dtype=float), 2)
    for env in pair:
        env.set_parameters({"damage": per_row, "handicap": [0.5, 1.0]})
    slots, generator = [fresh(env) for env in pair], np.random.default_rng(2)
    for _ in range(40):
        step_both(pair, slots, generator)
    other = opened("native")
    slots[1] = fresh(other)
    other.load_state(ours.save_state())
    assert other.parameter_values["damage"].tolist() == per_row.tolist()
    for _ in range(40):
        step_both((ours, other), slots, generator)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"nonsense": 1.0}, "unknown parameter 'nonsense'; these envs have damage, handicap"),
        ({"damage": [1.0, 2.0]}, "takes one number, or one per row"),
        ({"handicap": [1.0, 1.0], "damage": -1.0}, "damage must be at least 0"),
        ({"damage": np.arange(10.0)}, "differs between agents"),
    ],
)
def test_wrong_parameters_are_refused_and_nothing_is_set(opened, values, message):
    env = opened("native")
    env.set_parameters({"damage": 2.0})
    before = env.save_state()["rows"]
    with pytest.raises(EnvError, match=message):
        env.set_parameters(values)
    assert np.array_equal(env.save_state()["rows"], before)


def test_metrics_of_native_rollouts_are_those_of_the_stepwise_collector(duel):
    stats = []
    for engine in ("native", "local"):
        settings = {"rollout.num_envs": 4, "rollout.num_steps": 64, "rollout.engine": engine}
        config = build_config({"env.id": duel}, settings)
        env = build_env(config)
        policy = build_policy(config, Specs(env.obs_spec, env.action_spec))
        rollout = build_collector(config, env, policy).collect(policy)
        assert rollout.extras["env/hits"].shape == (64, 8)
        assert np.isnan(rollout.extras["env/won"].numpy()).sum() == (~rollout.valid.numpy()).sum() > 0
        stats.append(rollout.stats)
        env.close()
    assert stats[0].num_steps == stats[1].num_steps < 64 * 8
    assert [episode.metrics for episode in stats[0].finished] == [episode.metrics for episode in stats[1].finished]
    assert any(episode.metrics["hits"] for episode in stats[0].finished)


def test_what_gymnasium_s_interface_cannot_say_is_refused(duel, opened):
    with pytest.raises(NativeError, match="agents"):
        native.make(duel)
    with pytest.raises(NativeError, match="no native option 'nonsense'"):
        opened("native", kwargs={"nonsense": 1})
    with pytest.raises(EnvError, match=r"refuses env\.kwargs"):
        opened("local", kwargs={"nonsense": 1})


def test_rows_are_named_by_env_and_agent(opened):
    assert opened("native").describe(3).startswith("env 1, agent 1 (seed ")
