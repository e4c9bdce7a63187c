"""Two agents of one native env against its PettingZoo twin: the same rows, whoever is out of the game."""

import numpy as np
import pytest

from surefoot.core.config import EnvConfig, RolloutConfig
from surefoot.core.errors import EnvError, NativeError
from surefoot.envs import native
from surefoot.envs.engines.native import NativeEngine
from surefoot.envs.make import make_vec_env
from surefoot.envs.protocol import new_slot, step_all
from surefoot.verification.contract import random_actions

DUEL = "pettingzoo:surefoot.envs.tasks.duel"
ENVS = 5


def opened(engine, **config):
    return make_vec_env(DUEL, EnvConfig(**config), ENVS, 3, RolloutConfig(engine=engine))


def fresh(env):
    slot = new_slot(env.num_rows, env.obs_spec, env.mask_size)
    env.reset(slot, 7)
    return slot


def step_both(pair, slots, generator):
    actions = random_actions(generator, pair[0].action_spec, slots[0])
    for env, slot in zip(pair, slots, strict=True):
        step_all(env, actions, slot)
    for field in ("obs", "reward", "terminated", "truncated", "valid", "action_mask"):
        assert np.array_equal(getattr(slots[0], field), getattr(slots[1], field)), field


@pytest.mark.parametrize("config", [{}, {"max_episode_steps": 7}, {"truncation_as_termination": True}])
def test_agents_are_stepped_as_the_pettingzoo_adapter_steps_them(config):
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


def test_a_saved_state_knows_who_is_out():
    pair = one, other = opened("native"), opened("native")
    slots, generator = [fresh(env) for env in pair], np.random.default_rng(2)
    while slots[0].valid.all():
        step_all(one, random_actions(generator, one.action_spec, slots[0]), slots[0])
    other.load_state(one.save_state())
    for _ in range(60):
        step_both(pair, slots, generator)


def test_what_gymnasium_s_interface_cannot_say_is_refused():
    with pytest.raises(NativeError, match=r"'pettingzoo:surefoot.envs.tasks.duel' has no native implementation"):
        native.make(DUEL)
    assert "max_cycles" in opened("native", kwargs={"max_cycles": 9}).why_not_native
    with pytest.raises(EnvError, match="refuses the arguments"):
        opened("native", kwargs={"nonsense": 1})


def test_rows_are_named_by_env_and_agent():
    assert opened("native").describe(3).startswith("env 1, agent 1 (seed ")
