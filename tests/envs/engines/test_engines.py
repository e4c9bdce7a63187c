"""The contract of every engine: the same numbers as the shard it is made of, whoever steps it and in how many parts."""

from collections.abc import Sequence
from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np
import pytest
import torch

from surefoot.data.records import Rollout
from surefoot.data.tree import tree_items
from surefoot.envs.adapters.gymnasium_envs import GymnasiumEnvs
from surefoot.envs.blueprint import Blueprint
from surefoot.envs.engines import Engine, engines, env_groups
from surefoot.envs.protocol import VecEnv, new_slot, step_all
from surefoot.policies.actor_critic import ActorCritic
from surefoot.rollout.stepwise import StepwiseCollector
from surefoot.settings.config import NormalizeConfig, PolicyConfig, RolloutConfig
from tests.envs.tasks import ACTIONS, FORMS, CounterEnv, MaskMethodEnv, ResetCountingEnv, SavingEnv, factories
from tests.envs.teams import TeamEnv

SEED = 5
LENGTHS = (3, 1, 4, 2)
KINDS: dict[str, dict[str, Any]] = {
    "vector": {},
    "image": {"form": "picture dict", "actions": "box"},
    "nested": {"form": "nested", "actions": "multi_discrete", "masks_in_info": True},
    "masks by method": {"kind": MaskMethodEnv, "form": "double"},
}
ANYONES = [name for name in engines.names() if engines[name].takes_any_env and engines[name].steps_here]
PLACES = [(name, *places) for name in ANYONES for places in ((1, 1), (2, 2), (3, 2))]
OTHERS = [name for name in ANYONES if name != "local"]


def uneven(count: int, kind: Any = CounterEnv, **kwargs: Any) -> list[partial[Any]]:
    """Envs whose episodes end at different times."""
    return [partial(kind, index=i, lengths=LENGTHS[i % 4 :] + LENGTHS[: i % 4], **kwargs) for i in range(count)]


def make(engine: str, makers: Sequence[Any], workers: int = 1, groups: int = 1, **config: Any) -> Engine:
    return engines[engine](
        Blueprint(list(makers), SEED), RolloutConfig(engine=engine, workers=workers, groups=groups, **config)
    )


def policy_for(env: VecEnv) -> ActorCritic:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return ActorCritic(env.obs_spec, env.action_spec, PolicyConfig(), NormalizeConfig())


def collect(env: VecEnv, rollouts: int = 3, num_steps: int = 5) -> list[dict[str, torch.Tensor]]:
    """Rollouts of a real policy that samples, as copies of all their tensors."""
    policy = policy_for(env)
    collector = StepwiseCollector(env, policy, num_steps, SEED)
    collected = [tensors(collector.collect(policy)) for _ in range(rollouts)]
    env.close()
    return collected


def tensors(rollout: Rollout) -> dict[str, torch.Tensor]:
    fields = {f"obs {key}": leaf for key, leaf in tree_items(rollout.obs)} | {
        name: value for name, value in vars(rollout).items() if isinstance(value, torch.Tensor)
    }
    return {name: value.clone() for name, value in fields.items()}


def assert_equal(ours: list[dict[str, torch.Tensor]], theirs: list[dict[str, torch.Tensor]]) -> None:
    for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        assert one.keys() == other.keys()
        for name in one:
            assert torch.equal(one[name], other[name]), f"{name} of rollout {index} differs"


@pytest.mark.parametrize("engine", OTHERS)
@pytest.mark.parametrize("kind", KINDS)
def test_what_local_gives_bit_for_bit_for_any_number_of_workers(kind, engine):
    makers = uneven(7, **KINDS[kind])
    reference = collect(make("local", makers, groups=2))
    assert reference[0]["terminated"].any()
    assert reference[0]["truncated"].any()
    assert len({tuple(row.tolist()) for row in reference[0]["truncated"].T}) > 1, "all end at the same times"
    for workers in (1, 2, 3):
        assert_equal(collect(make(engine, makers, workers, groups=2)), reference)


@pytest.mark.parametrize("engine", OTHERS)
@pytest.mark.parametrize(("form", "actions"), list(zip_longest(FORMS, ACTIONS, fillvalue="discrete")))
def test_every_observation_and_action_space_travels(form, actions, engine):
    makers = uneven(3, form=form, actions=actions)
    assert_equal(collect(make(engine, makers, 2), 1), collect(make("local", makers), 1))


@pytest.mark.parametrize("engine", OTHERS)
@pytest.mark.parametrize("masks", ["", "obs", "info"])
def test_agents_of_parallel_envs_are_the_same_rows_in_any_number_of_workers(masks, engine):
    makers = [partial(TeamEnv, index=index, masks=masks) for index in range(5)]
    reference = collect(make("local", makers, groups=2))
    assert reference[0]["reward"].shape == (5, 15)
    assert not reference[0]["valid"].all()
    assert ("action_mask" in reference[0]) is bool(masks)
    for workers in (1, 2, 3):
        assert_equal(collect(make(engine, makers, workers, groups=2)), reference)


@pytest.mark.parametrize(("engine", "workers", "groups"), PLACES)
def test_rows_do_not_depend_on_who_steps_them_or_in_which_groups(engine, workers, groups):
    """The same actions for everybody: inference in other batches may round differently, the envs must not care."""
    makers = factories(5, lengths=LENGTHS)
    one, other = GymnasiumEnvs(makers, SEED), make(engine, makers, workers, groups)
    slots = [new_slot(5, env.obs_spec, env.mask_size) for env in (one, other)]
    for env, slot in zip((one, other), slots, strict=True):
        env.reset(slot, 7)
    assert [one.describe(row) for row in range(5)] == [other.describe(row) for row in range(5)]
    for step in range(9):
        actions = np.arange(5) * step % 4
        for env, slot in zip((one, other), slots, strict=True):
            step_all(env, actions, slot)
        for field in ("obs", "reward", "terminated", "truncated", "valid"):
            assert np.array_equal(*(getattr(slot, field) for slot in slots)), field
        ended = slots[0].ended
        assert np.array_equal(one.final_obs[ended], other.final_obs[ended])
    other.close()


@pytest.mark.parametrize(("engine", "workers", "groups"), PLACES)
def test_envs_are_not_reset_more_often_because_they_are_spread(engine, workers, groups):
    with make(engine, [ResetCountingEnv] * 5, workers, groups) as env:
        slot = new_slot(5, env.obs_spec, 0)
        env.reset(slot)
        step_all(env, np.zeros(5, dtype=np.int64), slot)
        assert slot.reward.tolist() == [2, 1, 1, 1, 1], "only the first is asked for masks"


@pytest.mark.parametrize(("engine", "workers", "groups"), PLACES)
def test_a_state_saved_by_one_engine_goes_on_in_another(engine, workers, groups):
    makers = factories(5, SavingEnv, lengths=LENGTHS)
    reference = make("local", makers)
    slot = new_slot(5, reference.obs_spec, 0)
    reference.reset(slot)
    step_all(reference, np.zeros(5, dtype=np.int64), slot)
    with make(engine, makers, workers, groups) as other:
        other.load_state(reference.save_state() or {}, step=1)
        mine = new_slot(5, other.obs_spec, 0)
        assert [one["inner"] for one in (other.save_state() or {})["envs"]] == [
            one["inner"] for one in (reference.save_state() or {})["envs"]
        ]
        for _ in range(4):
            for env, into in ((reference, slot), (other, mine)):
                step_all(env, np.ones(5, dtype=np.int64), into)
            assert np.array_equal(slot.obs, mine.obs)
            assert np.array_equal(slot.reward, mine.reward)


@pytest.mark.parametrize("engine", ANYONES)
def test_envs_that_cannot_save_their_state_say_so(engine):
    with make(engine, factories(3)) as env:
        env.reset(new_slot(3, env.obs_spec, 0))
        assert env.save_state() is None


@pytest.mark.parametrize("engine", ANYONES)
def test_another_reset_gives_other_episodes_and_the_same_one_the_same(engine):
    with make(engine, factories(2), groups=2) as env:
        seen = []
        for step in (0, 3, 0):
            slot = new_slot(2, env.obs_spec, 0)
            env.reset(slot, step)
            seen.append(np.array(slot.obs))
        assert np.array_equal(seen[0], seen[2])
        assert not np.array_equal(seen[0], seen[1])


def test_two_groups_from_32_envs_up_where_that_hides_inference():
    counts = (1, 31, 32, 500)
    assert [len(env_groups(count, RolloutConfig(), overlaps=True)) for count in counts] == [1, 1, 2, 2]
    assert [len(env_groups(count, RolloutConfig(), overlaps=False)) for count in counts] == [1, 1, 1, 1]
    assert [len(env_groups(count, RolloutConfig(groups=3), overlaps=False)) for count in (2, 64)] == [2, 3]
    assert env_groups(7, RolloutConfig(groups=2), overlaps=True) == [range(4), range(4, 7)]


@pytest.mark.parametrize("engine", OTHERS)
@pytest.mark.parametrize("count", [32, 40])
def test_the_defaults_of_all_engines_give_the_same_run(engine, count):
    makers = uneven(count)
    policy = policy_for(GymnasiumEnvs(makers, SEED))
    obs, start = torch.randn(count, 5), torch.zeros(count, dtype=torch.bool)
    halves = [policy(obs[rows], (), start[rows]).value for rows in (slice(0, count // 2), slice(count // 2, count))]
    if not torch.equal(torch.cat(halves), policy(obs, (), start).value):
        pytest.skip("this processor rounds matrix products of half the rows differently")
    reference = collect(make("local", makers, groups=0), 2)
    assert_equal(collect(make(engine, makers, workers=2, groups=0), 2), reference)
