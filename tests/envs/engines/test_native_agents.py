"""Two agents of one native env against its PettingZoo twin: the same rows, whoever is out of the game."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from surefoot import PPO
from surefoot.benchmark.configured import Replaying
from surefoot.cli.envs import run as list_envs
from surefoot.compose import Specs, build_collector, build_env, build_policy
from surefoot.envs import native
from surefoot.envs.engines.native import NativeEngine
from surefoot.envs.make import make_vec_env
from surefoot.envs.protocol import slot_for, step_all
from surefoot.errors import EnvError, NativeError
from surefoot.philox import Stream, derived_seed
from surefoot.settings.config import EnvConfig, RolloutConfig
from surefoot.settings.layers import build_config
from surefoot.verification.contract import random_actions
from surefoot.verification.subject import perturbed
from tests.compiled import compiled

EXAMPLES = Path(__file__).parents[3] / "docs/extend/examples"
ENVS = 5
pytestmark = pytest.mark.xdist_group("duel")


@pytest.fixture(scope="module")
def duel(tmp_path_factory):
    """The library, with its twin beside it."""
    folder = tmp_path_factory.mktemp("duel")
    for name in ("duel.cpp", "duel.py"):
        shutil.copy(EXAMPLES / name, folder)
    return str(compiled(folder / "duel.cpp"))


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


def test_agents_that_do_not_take_part_from_the_start(opened):
    """Teams of different sizes: nobody acts for the absent, in either path, until a reset calls them back."""
    pair = opened("native"), opened("local")
    for env in pair:
        env.set_parameters({"handicap": [0.0, 9.0]})
    slots, generator = [fresh(env) for env in pair], np.random.default_rng(2)
    assert np.array_equal(slots[0].obs, slots[1].obs)
    assert not slots[0].obs[1::2].any()
    assert slots[0].action_mask[1::2].all()
    for _ in range(40):
        step_both(pair, slots, generator)
        assert slots[0].valid.tolist() == [True, False] * ENVS
    for env in pair:
        env.set_parameters({"handicap": [0.0, 0.0]})
    seen = np.zeros(2 * ENVS, bool)
    for _ in range(60):
        step_both(pair, slots, generator)
        seen |= slots[0].valid
    assert seen.all()


def test_an_env_in_which_nobody_takes_part_is_an_error(opened):
    for engine, message in (("native", "env 0: no agent takes part after a reset"), ("local", "has no agents")):
        env = opened(engine)
        env.set_parameters({"handicap": [9.0, 9.0]})
        with pytest.raises(EnvError, match=message):
            fresh(env)


def test_other_policies_play_one_side(duel):
    """The second agent of every env; whole rollouts are equal to those of the twin, step by step."""
    rollouts = []
    for engine in ("native", "local"):
        settings = {"rollout.num_envs": 8, "rollout.num_steps": 40, "rollout.engine": engine, "policy.memory": "gru"}
        config = build_config({"env.id": duel}, settings)
        env = build_env(config)
        specs = Specs(env.obs_spec, env.action_spec)
        policy, other = (perturbed(build_policy(config, specs), seed) for seed in (1, 2))
        collector = build_collector(config, env, policy)
        env.set_parameters({"handicap": [0.0, 2.5]})
        collector.rows.actors.add("other", other)
        collector.rows.actors.assign(slice(1, None, 2), "other")
        collector.collect(policy)
        kept = collector.collect(policy)
        fields = {name: tensor.clone() for name, tensor in collector.rows.buffer.tensors.items()}
        rollouts.append((fields, kept.stats))
        env.close()
    (ours, our), (theirs, their) = rollouts
    for name, tensor in ours.items():
        np.testing.assert_allclose(tensor.numpy(), theirs[name].numpy(), atol=1e-4, err_msg=name)
    assert set(ours["actor"].unique().tolist()) == {-1, 0, 1}
    assert not ours["valid"][:, 1::2].any()
    assert (ours["actor"] == 0).equal(ours["valid"])
    assert our.num_steps == their.num_steps == int(ours["valid"].sum())
    assert [episode.metrics for episode in our.finished] == [episode.metrics for episode in their.finished]
    assert len(our.finished) > 0


def test_the_vector_env_has_an_entry_for_every_agent(duel, opened):
    theirs, ours = opened("local"), native.make(duel, ENVS, threads=2)
    assert (ours.num_envs, ours.num_agents) == (2 * ENVS, 2)
    seeds = [derived_seed(3, env, Stream.ENV_SEED, 7) for env in range(ENVS)]
    slot, (obs, info) = fresh(theirs), ours.reset(seed=seeds)
    generator, invalid = np.random.default_rng(1), 0
    for step in range(60):
        assert np.array_equal(obs.astype(np.float32), slot.obs), step
        assert np.array_equal(info["action_mask"], slot.action_mask)
        assert np.array_equal(info["valid"], slot.valid)
        invalid += int((~slot.valid).sum())
        actions = random_actions(generator, theirs.action_spec, slot)
        obs, reward, terminated, truncated, info = ours.step(actions)
        step_all(theirs, actions, slot)
        assert np.array_equal(reward.astype(np.float32), slot.reward)
        assert np.array_equal([terminated, truncated], [slot.terminated, slot.truncated])
    assert invalid > 0
    other = native.make(duel, ENVS)
    other.load_state(ours.save_state())
    assert all(map(np.array_equal, ours.step(actions)[:4], other.step(actions)[:4]))
    ours.set_parameters({"damage": np.repeat(np.arange(ENVS), 2)})
    mask = np.arange(2 * ENVS) < 2
    ours.reset(options={"reset_mask": mask})
    for refused in (
        lambda: ours.reset(options={"reset_mask": np.arange(2 * ENVS) < 1}),
        lambda: ours.reset(seed=[1] * 2 * ENVS),
        lambda: native.make(duel, autoreset_mode="NextStep"),
    ):
        with pytest.raises(NativeError):
            refused()
    with pytest.raises(EnvError, match=r"has no parallel_env\(\)"):
        native.make("pettingzoo:tests.envs.teams")


def test_a_rollout_is_replayed(duel):
    config = build_config({"env.id": duel}, {"rollout.num_envs": 4, "rollout.num_steps": 64})
    replaying = Replaying(config)
    rollout, taken_s = replaying._replay_one()
    assert (~rollout.valid).any()
    assert taken_s > 0
    core = replaying._engine.core
    start = core.save()
    _, after = replaying._trainer.collector.collect(replaying._trainer.policy), core.save()
    rollout = replaying._trainer.collector.rows.buffer
    core.load(start)
    actions = rollout.action.numpy().reshape(64, 8, -1)
    core.replay(np.ascontiguousarray(actions), (rollout.terminated | rollout.truncated).numpy())
    assert core.save().tobytes() == after.tobytes(), "the same episodes, with the same agents out of the game"


def test_every_command_takes_it(duel, tmp_path):
    agent = PPO(duel, num_envs=2, num_steps=16, batch_size=16, hidden=8, preset="none").learn(64, progress=False)
    agent.save(tmp_path / "duel.safetensors")
    found = PPO.load(tmp_path / "duel.safetensors", trust=True).evaluate(6)
    assert len(found.rewards) == 6
    assert set(found.metrics) == {"hits", "won"}
    assert agent.record(tmp_path / "duel.gif", 2).lengths
    grid = agent.evaluate_over({"damage": [0.0, 3.0]}, 4)
    assert grid.at(damage=0.0).lengths != grid.at(damage=3.0).lengths


def test_envs_lists_teams_of_the_core(monkeypatch, capsys):
    monkeypatch.setattr("surefoot.envs.native.native_teams", lambda: ("pettingzoo:a.team",))
    assert list_envs(filter="team") == 0
    assert capsys.readouterr().out == " n pettingzoo:a.team\n"


def test_unknown_options_are_refused(opened):
    with pytest.raises(NativeError, match="no native option 'nonsense'"):
        opened("native", kwargs={"nonsense": 1})
    with pytest.raises(EnvError, match=r"does not accept env\.kwargs"):
        opened("local", kwargs={"nonsense": 1})


def test_rows_are_named_by_env_and_agent(opened):
    assert opened("native").describe(3).startswith("env 1, agent 1 (seed ")
