"""The local engine: what it hands to envs and what it makes of their answers."""

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.wrappers import TimeLimit

from surefoot.data.tree import tree_items
from surefoot.envs.adapters.gymnasium_envs import GymnasiumEnvs
from surefoot.envs.make import make_vec_env
from surefoot.envs.protocol import Slot, VecEnv, new_slot
from surefoot.envs.protocol.checks import check_step
from surefoot.envs.protocol.spaces import ObsWriter
from surefoot.philox import Stream, derived_seed
from surefoot.settings.config import EnvConfig
from tests.envs.tasks import (
    ACTIONS,
    ENDLESS,
    FORMS,
    CounterEnv,
    LooseTypesEnv,
    MaskMethodEnv,
    OldStyleEnv,
    SavingEnv,
    counters,
    factories,
    opened,
)


def copied(slot: Slot) -> dict[str, np.ndarray]:
    fields = {name: getattr(slot, name) for name in ("reward", "terminated", "truncated", "valid", "action_mask")}
    leaves = {f"obs {key}": leaf for key, leaf in tree_items(slot.obs)}
    return {name: value.copy() for name, value in (fields | leaves).items() if value is not None}


def run(env: VecEnv, num_steps: int, action: int = 1) -> list[dict[str, np.ndarray]]:
    slot = opened(env)
    seen = [copied(slot)]
    for _ in range(num_steps):
        env.step(np.full(env.num_rows, action), slot)
        seen.append(copied(slot) | {"final_obs": np.copy(env.final_obs)})
    return seen


def test_reset_seeds_each_row_from_the_seed_and_its_index():
    env = counters(3, seed=6)
    slot = opened(env)
    for row in range(3):
        luck = np.random.default_rng(derived_seed(6, row, Stream.ENV_SEED)).random()
        assert slot.obs[row, 4] == np.float32(luck)
        assert env.describe(row) == f"env {row} (seed {derived_seed(6, row, Stream.ENV_SEED)})"
    assert len(set(slot.obs[:, 4])) == 3


def test_reset_starts_anew_from_the_same_seeds():
    env = counters(2)
    first, second = run(env, 5), run(env, 5)
    for before, after in zip(first, second, strict=True):
        for name in ("obs ", "reward", "terminated", "truncated"):
            np.testing.assert_array_equal(before[name], after[name], err_msg=name)


def test_an_env_that_ended_shows_its_next_episode_and_leaves_its_last_observation():
    env = counters(2, lengths=[2], endings=["truncated"])
    _, first, second, third = run(env, 3)
    assert first["obs "][:, :3].tolist() == [[0, 0, 1], [1, 0, 1]]
    assert not first["truncated"].any()
    assert second["truncated"].all()
    assert second["reward"].tolist() == [1, 10_001]
    assert second["obs "][:, :3].tolist() == [[0, 1, 0], [1, 1, 0]]
    assert second["final_obs"][:, :3].tolist() == [[0, 0, 2], [1, 0, 2]]
    assert third["obs "][:, :3].tolist() == [[0, 1, 1], [1, 1, 1]]
    assert not third["truncated"].any()


def test_both_flags_are_kept_apart_and_as_given():
    seen = run(counters(1, lengths=[1], endings=["terminated", "truncated", "both"]), 3)
    assert [bool(step["terminated"][0]) for step in seen[1:]] == [True, False, True]
    assert [bool(step["truncated"][0]) for step in seen[1:]] == [False, True, True]


def test_rows_end_by_themselves():
    makers = [*factories(1, lengths=[2]), lambda: CounterEnv(1, lengths=[3])]
    seen = run(GymnasiumEnvs(makers, seed=0), 3)
    assert [(step["terminated"]).tolist() for step in seen[1:]] == [[False, False], [True, False], [False, True]]
    assert seen[3]["final_obs"][:, 2].tolist() == [2, 3], "row 0's final observation is that of its last ending"


def test_the_whole_slot_is_filled():
    env = counters(2, lengths=[ENDLESS])
    slot = opened(env)
    slot.reward[:], slot.terminated[:], slot.truncated[:], slot.valid[:] = 77, True, True, False
    env.step(np.zeros(2, dtype=np.int64), slot)
    assert slot.reward.tolist() == [0, 10_000]
    assert not slot.ended.any()
    assert slot.valid.all()


@pytest.mark.parametrize("form", FORMS)
def test_observations_of_every_form_are_written_as_shown(form):
    env = counters(3, form=form, lengths=[2], endings=["truncated"])
    slot = opened(env)
    by_hand = [CounterEnv(row, form=form) for row in range(3)]
    for row, other in enumerate(by_hand):
        other.reset(seed=derived_seed(3, row, Stream.ENV_SEED))
    for _ in range(2):
        env.step(np.ones(3, dtype=np.int64), slot)
        for other in by_hand:
            other.step(1)
    writer = ObsWriter(FORMS[form].space)
    expected = new_slot(3, env.obs_spec, 0).obs
    for row, other in enumerate(by_hand):
        writer.write(other.observe(), expected, row, str)
    for (key, leaf), (_, wanted) in zip(tree_items(env.final_obs), tree_items(expected), strict=True):
        np.testing.assert_array_equal(leaf, wanted, err_msg=key)


@pytest.mark.parametrize("actions", ACTIONS)
def test_every_env_gets_its_own_action_in_the_dtype_of_its_space(actions):
    """The counters refuse what is not in their space, dtype included."""
    env, space = counters(3, actions=actions, lengths=[ENDLESS]), ACTIONS[actions]
    slot = opened(env)
    space.seed(5)
    given = [[space.sample() for _ in range(3)] for _ in range(4)]
    dtype = np.float32 if isinstance(space, spaces.Box) else np.int64  # what policies give
    for actions_of_rows in given:
        env.step(np.stack(actions_of_rows).astype(dtype), slot)
    for row, counter in enumerate(env._envs):
        np.testing.assert_allclose(counter.received, [step[row] for step in given], rtol=1e-6)
    # The sum of each row's last action is part of what it shows.
    np.testing.assert_allclose(slot.obs[:, 3], [np.sum(action) for action in given[-1]], rtol=1e-5)


@pytest.mark.parametrize("kind", [OldStyleEnv, LooseTypesEnv])
def test_other_ways_to_answer_mean_the_same(kind):
    endings = ["terminated", "truncated"]
    plain, other = (run(counters(2, k, endings=endings), 12) for k in (CounterEnv, kind))
    for step, other_step in zip(plain, other, strict=True):
        for name, value in step.items():
            np.testing.assert_array_equal(value, other_step[name], err_msg=name)


@pytest.mark.parametrize(
    "actions", ["discrete", "multi_discrete", "shifted multi_discrete", "multi_binary", "binary grid"]
)
@pytest.mark.parametrize("way", ["info", "method", "method of a wrapped env"])
def test_masks_are_those_of_the_observation_beside_them(actions, way):
    def make(index: int):
        env = (CounterEnv if way == "info" else MaskMethodEnv)(index, actions=actions, masks_in_info=way == "info")
        return TimeLimit(env, 3) if way == "method of a wrapped env" else env

    env = GymnasiumEnvs([lambda: make(0), lambda: make(1)], seed=1)
    slot = opened(env)
    for _ in range(9):
        for row, counter in enumerate(env._envs):
            np.testing.assert_array_equal(slot.action_mask[row], counter.unwrapped.current_mask())
        first_allowed = np.stack([_allowed(counter.unwrapped) for counter in env._envs])
        env.step(first_allowed, slot)
        check_step(env, slot, 0)


def _allowed(counter: CounterEnv) -> np.ndarray:
    """The first action that the mask allows; no for every yes or no."""
    space, mask = counter.action_space, counter.current_mask()
    if isinstance(space, spaces.MultiBinary):
        return np.zeros(space.shape, dtype=np.int64)
    sizes = [space.n] if isinstance(space, spaces.Discrete) else space.nvec.ravel()
    parts = np.split(mask, np.cumsum(sizes)[:-1])
    return np.reshape([int(part.argmax()) for part in parts], space.shape) + space.start


def test_a_wrapper_may_tell_the_mask():
    """As sb3-contrib's ActionMasker does."""

    class Masker(TimeLimit):
        def action_masks(self):
            return np.array([True, False, True, False])

    env = GymnasiumEnvs([lambda: Masker(CounterEnv(), 3)], seed=0)
    assert env.mask_size == 4
    assert opened(env).action_mask.tolist() == [[True, False, True, False]]


def test_masks_of_box_actions_are_ignored():
    class MaskedBoxEnv(CounterEnv):
        def _info(self):
            return {"action_mask": np.ones(3)}

    env = counters(1, MaskedBoxEnv, actions="box")
    assert env.mask_size == 0
    assert opened(env).action_mask is None


def test_truncation_as_termination():
    makers = factories(1, lengths=[1], endings=["truncated", "terminated"])
    env = GymnasiumEnvs(makers, 0, truncation_as_termination=True)
    seen = run(env, 2)
    assert [bool(step["terminated"][0]) for step in seen[1:]] == [True, True]
    assert [bool(step["truncated"][0]) for step in seen[1:]] == [False, False]


def test_rows_go_on_from_a_saved_state():
    saved_env, slot = counters(3, SavingEnv), None
    slot = opened(saved_env)
    for _ in range(5):
        saved_env.step(np.zeros(3, dtype=np.int64), slot)
    fresh = counters(3, SavingEnv)
    fresh_slot = opened(fresh)
    fresh.load_state(saved_env.save_state())
    for action in range(4):
        for env, target in ((saved_env, slot), (fresh, fresh_slot)):
            env.step(np.full(3, action), target)
        for name, value in copied(slot).items():
            np.testing.assert_array_equal(value, copied(fresh_slot)[name], err_msg=name)


def test_one_env_that_cannot_say_makes_the_whole_state_unknown():
    env = GymnasiumEnvs([SavingEnv, CounterEnv], seed=0)
    opened(env)
    assert env.save_state() is None


def test_close_twice():
    closed = []

    class ClosingEnv(CounterEnv):
        def close(self):
            closed.append(self.place.index)

    env = counters(2, ClosingEnv)
    env.close()
    env.close()
    assert closed == [0, 1]


def test_a_reset_at_a_later_step_starts_other_episodes():
    """A resumed run whose envs cannot save their state must not replay the first episodes of the run."""
    env = make_vec_env("CartPole-v1", EnvConfig(), 2, 0)
    first, again, later = (new_slot(2, env.obs_spec, 0) for _ in range(3))
    env.reset(first)
    env.reset(again, 0)
    env.reset(later, 512)
    assert np.array_equal(first.obs, again.obs)
    assert not np.array_equal(first.obs, later.obs)
