"""What `step` may return, and what every step is checked for."""

import numpy as np
import pytest

from surefoot.envs.protocol.checks import check_finite, check_masks
from surefoot.envs.protocol.steps import EnvStep, env_step
from surefoot.errors import EnvError, NonFiniteError
from tests.envs.tasks import counters, opened


def who(row: int) -> str:
    return f"env {row} (seed 9)"


def test_gymnasium_s_five_values():
    info = {"note": 1}
    step = env_step(("obs", 1.5, True, False, info), 0, who)
    assert step == EnvStep("obs", 1.5, True, False, info)


@pytest.mark.parametrize(
    ("done", "info", "terminated", "truncated"),
    [
        (False, {}, False, False),
        (True, {}, True, False),
        (True, {"TimeLimit.truncated": True}, False, True),
        (True, {"TimeLimit.truncated": False}, True, False),
        (False, {"TimeLimit.truncated": False}, False, False),
        (1, {"TimeLimit.truncated": np.bool_(True)}, False, True),
    ],
)
def test_gym_s_four_values(done, info, terminated, truncated):
    step = env_step(("obs", 1, done, info), 0, who)
    assert (step.terminated, step.truncated) == (terminated, truncated)
    assert isinstance(step.reward, float)


@pytest.mark.parametrize("flag", [True, np.bool_(True), 1, np.int64(1), np.uint8(1), np.array(True), np.array([1])])
def test_flags_that_can_only_mean_yes(flag):
    step = env_step(("obs", 0.0, flag, flag, {}), 0, who)
    assert step.terminated is True
    assert step.truncated is True


@pytest.mark.parametrize("flag", [2, -1, None, "yes", 1.0, np.array([True, False]), []])
def test_other_flags_are_refused(flag):
    with pytest.raises(EnvError, match=r"env 3 \(seed 9\): terminated and truncated must be booleans, got"):
        env_step(("obs", 0.0, False, flag, {}), 3, who)


@pytest.mark.parametrize("reward", [2, 2.0, np.float32(2), np.int64(2), np.array(2.0), np.array([2]), [2.0], True + 1])
def test_rewards_that_are_one_number(reward):
    step = env_step(("obs", reward, False, False, {}), 0, who)
    assert step.reward == 2.0
    assert type(step.reward) is float


@pytest.mark.parametrize("reward", [np.zeros(2), [], "much", {"main": 1.0}, None, object()])
def test_other_rewards_are_refused(reward):
    with pytest.raises(EnvError, match=r"env 3 \(seed 9\): the reward must be one number, got"):
        env_step(("obs", reward, False, False, {}), 3, who)


@pytest.mark.parametrize("result", [(), ("obs", 0.0, False), ("obs", 0.0, False, False, {}, 1), "obs", None])
def test_other_tuples_are_refused(result):
    with pytest.raises(
        EnvError, match=r"env 3 \(seed 9\): step must return \(obs, reward, terminated, truncated, info\)"
    ):
        env_step(result, 3, who)


@pytest.mark.parametrize("result", [("obs", 0.0, False, None), ("obs", 0.0, False, False, None)])
def test_an_info_that_is_no_dict_is_refused(result):
    with pytest.raises(EnvError, match=r"env 3 \(seed 9\): .*info"):
        env_step(result, 3, who)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_the_first_bad_element_is_named(bad):
    env = counters(3)
    obs = np.zeros((3, 5), dtype=np.float32)
    obs[2, 4] = bad
    with pytest.raises(
        NonFiniteError, match=rf"env 2 \(seed \d+\) returned {bad} in its observation, dimension 4 at step 17"
    ):
        check_finite(env, obs, "observation", 17)


def test_opposite_infinities_do_not_cancel():
    env = counters(3)
    with pytest.raises(NonFiniteError, match=r"env 0 .* returned inf in its reward at step 1"):
        check_finite(env, np.array([np.inf, -np.inf, 0], dtype=np.float32), "reward", 1)


def test_a_matrix_s_dimension_has_two_numbers():
    env = counters(2)
    obs = {"pose": np.zeros((2, 3, 3)), "map": np.zeros((2, 4, 4))}
    obs["map"][1, 2, 3] = np.nan
    with pytest.raises(
        NonFiniteError, match=r"env 1 .* returned nan in its observation 'map', dimension \[2, 3\] at step 0"
    ):
        check_finite(env, obs, "observation", 0)


def test_large_numbers_are_finite_though_their_sum_is_not():
    largest = np.full((2, 3), np.finfo(np.float32).max)
    check_finite(counters(2), largest, "observation", 0)


def test_only_the_rows_asked_for_are_checked():
    env = counters(2)
    obs = np.array([[np.nan], [1.0]], dtype=np.float32)
    check_finite(env, obs, "final observation", 0, where=np.array([False, True]))
    check_finite(env, obs, "observation", 0, slice(1, 2))
    with pytest.raises(NonFiniteError, match="env 0"):
        check_finite(env, obs, "final observation", 0, where=np.array([True, True]))
    with pytest.raises(NonFiniteError, match="env 1"):
        check_finite(env, obs[::-1], "observation", 0, slice(1, 2))


def test_masks_leave_each_choice_something():
    env = counters(2, actions="multi_discrete", masks_in_info=True)
    mask = opened(env).action_mask.copy()
    check_masks(env, mask, 4)
    mask[1] = [True, True, True, False, False]
    with pytest.raises(
        EnvError, match=r"env 1 \(seed \d+\) returned an action mask that forbids every action .*step 4"
    ):
        check_masks(env, mask, 4)


def test_yes_or_no_actions_may_all_be_no():
    env = counters(1, actions="multi_binary", masks_in_info=True)
    check_masks(env, np.zeros((1, 3), dtype=bool), 0)
