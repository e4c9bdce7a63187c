"""Sums along the steps of a rollout in the core equal their references in every bit."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from surefoot.learning.estimators.gae import gae
from surefoot.learning.native_returns import discounted_sums_in_core, gae_in_core
from surefoot.learning.reward_scaler import discounted_sums

NAMES = ("reward", "value", "last_value", "terminated", "truncated", "final_value")
SHAPES = [(1, 1), (7, 3), (128, 8), (33, 65)]


def in_core(*given: Any) -> tuple[Tensor, Tensor]:
    """With the arguments of the reference."""
    *tensors, gamma, gae_lambda, valid = given
    rollout: Any = SimpleNamespace(**dict(zip(NAMES, tensors, strict=True)), valid=valid)
    return gae_in_core(rollout, gamma, gae_lambda)


def numbers(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def flags(share: float, *shape: int, seed: int = 0) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)) < share


@pytest.mark.parametrize(("steps", "rows"), SHAPES)
@pytest.mark.parametrize("share_valid", [1.0, 0.8])
def test_advantages_and_returns(steps: int, rows: int, share_valid: float):
    shape = (steps, rows)
    endings = (flags(0.1, *shape, seed=1), flags(0.1, *shape, seed=2), 3 * numbers(*shape))
    given = (numbers(*shape), 2 * numbers(*shape) - 1, numbers(rows), *endings, 0.99, 0.95, flags(share_valid, *shape))
    for ours, reference in zip(in_core(*given), gae(*given), strict=True):
        assert torch.equal(ours, reference)


def test_a_nan_is_not_hidden_by_an_ending():
    steps = [torch.zeros(3, 1) for _ in range(3)]
    ended = torch.tensor([[False], [True], [False]])
    reward = torch.tensor([[0.0], [0.0], [torch.nan]])
    given = (reward, steps[0], torch.zeros(1), ended, torch.zeros(3, 1).bool(), steps[1], 0.99, 0.95, ~steps[2].bool())
    assert torch.equal(in_core(*given)[0].isnan(), gae(*given)[0].isnan())


@pytest.mark.parametrize(("steps", "rows"), SHAPES)
def test_discounted_sums(steps: int, rows: int):
    given = (numbers(steps, rows), flags(0.2, steps, rows), numbers(rows), 0.97)
    assert torch.equal(discounted_sums_in_core(*given), discounted_sums(*given))


def test_rollouts_in_any_layout():
    """What the core writes must not go into a copy."""
    ended = flags(0.2, 9, 5).T
    reward, last = numbers(9, 5).T, numbers(9)
    given = (reward, numbers(9, 5).T, last, ended, ended, numbers(9, 5).T, 0.99, 0.95, torch.ones(5, 9).bool())
    for ours, reference in zip(in_core(*given), gae(*given), strict=True):
        assert torch.equal(ours, reference)
    assert torch.equal(discounted_sums_in_core(reward, ended, last, 0.9), discounted_sums(reward, ended, last, 0.9))
