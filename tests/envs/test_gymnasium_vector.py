"""Gymnasium's vector envs in each autoreset mode, beside the local engine on the same envs with the same seeds."""

from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv, VectorWrapper

from surefoot.data.tree import tree_items
from surefoot.envs.adapters.gymnasium_vector import GymnasiumVectorEnv
from surefoot.envs.protocol import VecEnv
from surefoot.envs.protocol.checks import check_step
from surefoot.errors import EnvError
from tests.envs.tasks import FORMS, CounterEnv, ReusingEnv, counters, factories, opened

MODES = list(AutoresetMode)
Transition = dict[str, np.ndarray]


def adapted(
    count: int, mode: AutoresetMode, kind: Any = CounterEnv, seed: int = 3, **kwargs: Any
) -> GymnasiumVectorEnv:
    return GymnasiumVectorEnv(SyncVectorEnv(factories(count, kind, **kwargs), autoreset_mode=mode), seed)


def transitions(env: VecEnv, num_steps: int, action: int = 2) -> list[list[Transition]]:
    """The valid transitions of each row: observation before, what the step gave, final observation where it ended."""
    slot = opened(env)
    rows: list[list[Transition]] = [[] for _ in range(env.num_rows)]
    for step in range(num_steps):
        before = {key: leaf.copy() for key, leaf in tree_items(slot.obs)}
        env.step(np.full(env.num_rows, action), slot)
        check_step(env, slot, step)
        for row in np.flatnonzero(slot.valid):
            transition = {f"obs {key}": leaf[row] for key, leaf in before.items()}
            transition |= {name: getattr(slot, name)[row].copy() for name in ("reward", "terminated", "truncated")}
            if slot.ended[row]:
                transition |= {f"final {key}": leaf[row].copy() for key, leaf in tree_items(env.final_obs)}
            rows[row].append(transition)
    return rows


def assert_same(rows: list[list[Transition]], expected: list[list[Transition]], at_least: int) -> None:
    for row, wanted in zip(rows, expected, strict=True):
        shared = min(len(row), len(wanted))
        assert shared >= at_least
        for transition, other in zip(row[:shared], wanted[:shared], strict=True):
            assert transition.keys() == other.keys()
            for name, value in transition.items():
                np.testing.assert_array_equal(value, other[name], err_msg=name)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("mode", MODES)
def test_valid_transitions_are_those_of_the_local_engine(mode, form):
    # Of 14 steps, NEXT_STEP spends up to 5 on resets alone.
    rows = transitions(adapted(3, mode, form=form), 14)
    assert_same(rows, transitions(counters(3, form=form), 14), at_least=9)


@pytest.mark.parametrize("mode", MODES)
def test_in_subprocesses(mode):
    env = GymnasiumVectorEnv(AsyncVectorEnv(factories(2, form="dict"), autoreset_mode=mode), seed=3)
    try:
        assert_same(transitions(env, 14), transitions(counters(2, form="dict"), 14), at_least=9)
    finally:
        env.close()


@pytest.mark.parametrize("mode", MODES)
def test_without_gymnasium_s_own_copy(mode):
    env = GymnasiumVectorEnv(SyncVectorEnv(factories(2), copy=False, autoreset_mode=mode), seed=3)
    assert_same(transitions(env, 14), transitions(counters(2), 14), at_least=9)


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED])
def test_envs_that_reuse_their_observation_array(mode):
    """Not in SAME_STEP: there Gymnasium itself reports the reused array as the final observation."""
    assert_same(transitions(adapted(2, mode, ReusingEnv), 14), transitions(counters(2), 14), at_least=9)


@pytest.mark.parametrize("mode", MODES)
def test_reset_starts_anew(mode):
    env = adapted(2, mode, lengths=[2])
    # An odd number of steps leaves NEXT_STEP in the middle of a reset.
    first, again = transitions(env, 5), transitions(env, 5)
    assert_same(again, first, at_least=3)
    assert [len(row) for row in first] == [len(row) for row in again]


def test_next_step_s_reset_rows_are_invalid():
    env = adapted(2, AutoresetMode.NEXT_STEP, lengths=[2, 1], endings=["truncated"])
    slot = opened(env)
    valid, truncated, places = [], [], []
    for _ in range(6):
        env.step(np.zeros(2, dtype=np.int64), slot)
        valid.append(bool(slot.valid[1]))
        truncated.append(bool(slot.truncated[1]))
        places.append(slot.obs[1, 1:3].tolist())
    # Two steps, reset, one step, reset, and the next episode's first step.
    assert valid == [True, True, False, True, False, True]
    assert truncated == [False, True, False, True, False, False]
    assert places == [[0, 1], [0, 2], [1, 0], [1, 1], [2, 0], [2, 1]]


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.DISABLED])
def test_in_other_modes_every_row_is_valid(mode):
    env = adapted(2, mode, lengths=[1])
    slot = opened(env)
    for episode in range(1, 4):
        env.step(np.zeros(2, dtype=np.int64), slot)
        assert slot.valid.all()
        assert slot.terminated.all() == (episode % 3 == 1 or episode % 3 == 0)
        assert slot.obs[:, 1:3].tolist() == [[episode, 0]] * 2


@pytest.mark.parametrize("actions", ["discrete", "multi_discrete", "multi_binary"])
@pytest.mark.parametrize("mode", MODES)
def test_masks_are_those_of_the_observation_beside_them(mode, actions):
    """Rows end at different steps, so that some are reset while others go on."""
    makers = [partial(CounterEnv, row, [2 + row], actions=actions, masks_in_info=True) for row in range(3)]
    env = GymnasiumVectorEnv(SyncVectorEnv(makers, autoreset_mode=mode), seed=3)
    assert env.mask_size == {"discrete": 4, "multi_discrete": 5, "multi_binary": 3}[actions]
    slot = opened(env)
    was_masked = set()
    for step in range(12):
        resets_next = slot.ended & (mode is AutoresetMode.NEXT_STEP)
        for row, counter in enumerate(env._env.envs):
            # A row that is about to reset ignores its action, so it may be any.
            expected = np.ones(env.mask_size, dtype=bool) if resets_next[row] else counter.current_mask()
            np.testing.assert_array_equal(slot.action_mask[row], expected, err_msg=f"row {row} before step {step}")
            was_masked.add((row, bool(resets_next[row])))
        env.step(_allowed(slot.action_mask, env._env.single_action_space), slot)
        check_step(env, slot, step)
    assert len(was_masked) == (6 if mode is AutoresetMode.NEXT_STEP else 3)


def _allowed(masks: np.ndarray, space: spaces.Space[Any]) -> np.ndarray:
    if isinstance(space, spaces.MultiBinary):
        return np.zeros((len(masks), 3), dtype=np.int64)
    if isinstance(space, spaces.Discrete):
        return masks.argmax(1)
    return np.stack([masks[:, :3].argmax(1), masks[:, 3:].argmax(1)], axis=1)


class DenseFinalObs(VectorWrapper):
    """Reports final observations as one dense batch, as vector envs on arrays do."""

    def step(self, actions: Any) -> Any:
        *rest, infos = super().step(actions)
        if "final_obs" in infos:
            template = next(obs for obs in infos["final_obs"] if obs is not None)
            filled = [template if obs is None else obs for obs in infos["final_obs"]]
            infos["final_obs"] = {key: np.stack([obs[key] for obs in filled]) for key in template}
        return (*rest, infos)


def test_final_observations_may_be_one_dense_batch():
    vector = DenseFinalObs(SyncVectorEnv(factories(2, form="dict"), autoreset_mode=AutoresetMode.SAME_STEP))
    rows = transitions(GymnasiumVectorEnv(vector, seed=3), 14)
    assert_same(rows, transitions(counters(2, form="dict"), 14), at_least=14)


class NoFinalObs(VectorWrapper):
    """A SAME_STEP env that forgets its final observations."""

    def step(self, actions: Any) -> Any:
        *rest, infos = super().step(actions)
        return (*rest, {key: value for key, value in infos.items() if key != "final_obs"})


def forgetful(endings: list[str]) -> VectorEnv:
    return NoFinalObs(SyncVectorEnv(factories(2, lengths=[2], endings=endings), autoreset_mode=AutoresetMode.SAME_STEP))


def test_truncation_without_a_final_observation_is_refused_with_the_remedy():
    env = GymnasiumVectorEnv(forgetful(["truncated"]), seed=3)
    slot = opened(env)
    env.step(np.zeros(2, dtype=np.int64), slot)
    with pytest.raises(
        EnvError, match=r"env 0 \(seed \d+\) was truncated without .*final_obs.* env\.truncation_as_termination: true"
    ):
        env.step(np.zeros(2, dtype=np.int64), slot)


def test_it_is_accepted_as_termination():
    env = GymnasiumVectorEnv(forgetful(["truncated"]), seed=3, truncation_as_termination=True)
    rows = transitions(env, 4)
    assert [(bool(t["terminated"]), bool(t["truncated"])) for t in rows[1]] == [(False, False), (True, False)] * 2


@pytest.mark.parametrize("endings", [["terminated"], ["terminated", "terminated"]])
def test_termination_needs_no_final_observation(endings):
    rows = transitions(GymnasiumVectorEnv(forgetful(endings), seed=3), 4)
    assert [bool(t["terminated"]) for t in rows[0]] == [False, True, False, True]


def test_a_vector_env_that_does_not_say_how_it_resets_is_refused():
    vector = SyncVectorEnv(factories(2))
    vector.metadata = {}
    with pytest.raises(
        EnvError, match=r"SyncVectorEnv does not declare its autoreset mode; set metadata\['autoreset_mode'\]"
    ):
        GymnasiumVectorEnv(vector, seed=3)


def test_a_vector_env_with_one_generator_for_all_rows():
    """Gymnasium's own vectorized CartPole takes one seed, not a list."""
    seen = []
    for seed in (3, 3, 4):
        env = GymnasiumVectorEnv(gym.make_vec("CartPole-v1", 3, vectorization_mode="vector_entry_point"), seed)
        assert "seed" in env.describe(1)
        slot = opened(env)
        for step in range(40):
            env.step(np.ones(3, dtype=np.int64), slot)
            check_step(env, slot, step)
        seen.append(slot.obs.copy())
        env.close()
    np.testing.assert_array_equal(seen[0], seen[1])
    assert (seen[0] != seen[2]).any()


def test_what_a_vector_env_raises_is_typed():
    class BrokenEnv(CounterEnv):
        def step(self, action: Any) -> Any:
            raise RuntimeError("the motor is hot")

    env = adapted(2, AutoresetMode.NEXT_STEP, BrokenEnv)
    with pytest.raises(
        EnvError, match="the vector env raised an exception in step: RuntimeError: the motor is hot"
    ) as caught:
        env.step(np.zeros(2, dtype=np.int64), opened(env))
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_it_cannot_say_what_state_it_is_in():
    assert adapted(1, AutoresetMode.DISABLED).save_state() is None


def test_close_twice():
    env = adapted(1, AutoresetMode.DISABLED)
    env.close()
    env.close()
