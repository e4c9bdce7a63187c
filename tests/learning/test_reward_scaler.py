import math

import pytest
import torch

from surefoot.learning.reward_scaler import RewardScaler

from ..golden.rollouts import one_row


def test_rewards_are_divided_by_the_deviation_of_the_discounted_return():
    # gamma 0.5: the sums are 4, 2 + 1 = 3, 1.5 - 2 = -0.5, 0 - 0.25 = -0.25.
    scaler = RewardScaler(1, gamma=0.5, clip=100.0)
    scaled = scaler.scale(one_row([4.0, 1.0, -2.0, 0.0])).squeeze(1)
    deviation = torch.tensor([4.0, 3.0, -0.5, -0.25]).std(unbiased=False)
    torch.testing.assert_close(scaled, torch.tensor([4.0, 1.0, -2.0, 0.0]) / deviation, rtol=1e-5, atol=0)


def test_the_sum_is_carried_from_one_rollout_to_the_next():
    rewards = [4.0, 1.0, -2.0, 0.0, 3.0, 3.0]
    ended = [False, True, False, False, False, False]
    whole, halves = RewardScaler(1, 0.9, 10.0), RewardScaler(1, 0.9, 10.0)
    whole.scale(one_row(rewards, terminated=ended))
    for begin in (0, 2, 4):
        part = slice(begin, begin + 2)
        halves.scale(one_row(rewards[part], terminated=ended[part]))
    for name, value in whole.state().items():
        torch.testing.assert_close(halves.state()[name], value)


def test_scaled_rewards_are_clipped():
    scaler = RewardScaler(1, gamma=0.0, clip=1.5)
    scaled = scaler.scale(one_row([0.0] * 9 + [100.0])).squeeze(1)
    assert scaled.tolist() == [0.0] * 9 + [1.5]


def test_steps_that_did_not_happen_do_not_count():
    with_reset, without = RewardScaler(1, 0.9, 10.0), RewardScaler(1, 0.9, 10.0)
    scaled = with_reset.scale(
        one_row([1.0, 2.0, math.nan, 3.0], truncated=[False, True, False, False], valid=[True, True, False, True])
    )
    expected = without.scale(one_row([1.0, 2.0, 3.0], truncated=[False, True, False]))
    assert torch.equal(scaled[[0, 1, 3]], expected)
    assert scaled[2] == 0
    for name, value in without.state().items():
        assert torch.equal(with_reset.state()[name], value)


def test_constant_rewards_do_not_blow_up():
    scaler = RewardScaler(1, gamma=0.0, clip=10.0)
    assert scaler.scale(one_row([0.0, 0.0])).abs().max() == 0
    scaled = RewardScaler(1, gamma=0.0, clip=10.0).scale(one_row([1.0, 1.0]))
    assert scaled.tolist() == [[10.0], [10.0]]


def test_a_saved_state_goes_on():
    trained, resumed = RewardScaler(1, 0.9, 10.0), RewardScaler(1, 0.9, 10.0)
    trained.scale(one_row([1.0, -2.0, 3.0]))
    resumed.load_state(trained.state())
    assert torch.equal(resumed.scale(one_row([2.0, 1.0])), trained.scale(one_row([2.0, 1.0])))


def test_with_another_number_of_rows_only_the_running_sums_start_anew():
    trained, wider = RewardScaler(1, 0.9, 10.0), RewardScaler(2, 0.9, 10.0)
    trained.scale(one_row([1.0, -2.0, 3.0]))
    wider.load_state(trained.state())
    assert wider.state()["carried"].tolist() == [0.0, 0.0]
    assert wider.state()["var"].item() == pytest.approx(trained.state()["var"].item())
