"""Sums along the steps of a rollout in the core equal their references in every bit."""

from inspect import unwrap

import pytest
import torch
from torch import Tensor

from surefoot.learning import reward_scaler
from surefoot.learning.estimators import gae as estimator
from surefoot.learning.native_returns import discounted_sums_in_core, gae_in_core
from surefoot.native.kernels import readable_only

gae, discounted_sums = unwrap(estimator.gae), unwrap(reward_scaler.discounted_sums)
"""The references."""
SHAPES = [(1, 1), (7, 3), (128, 8), (33, 65)]


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
    for ours, reference in zip(gae_in_core(*given), gae(*given), strict=True):
        assert torch.equal(ours, reference)


def test_a_nan_is_not_hidden_by_an_ending():
    steps = [torch.zeros(3, 1) for _ in range(3)]
    ended = torch.tensor([[False], [True], [False]])
    reward = torch.tensor([[0.0], [0.0], [torch.nan]])
    given = (reward, steps[0], torch.zeros(1), ended, torch.zeros(3, 1).bool(), steps[1], 0.99, 0.95, ~steps[2].bool())
    assert torch.equal(gae_in_core(*given)[0].isnan(), gae(*given)[0].isnan())


@pytest.mark.parametrize(("steps", "rows"), SHAPES)
def test_discounted_sums(steps: int, rows: int):
    given = (numbers(steps, rows), flags(0.2, steps, rows), numbers(rows), 0.97)
    assert torch.equal(discounted_sums_in_core(*given), discounted_sums(*given))


def test_rollouts_in_any_layout():
    """What the core writes must not go into a copy."""
    ended = flags(0.2, 9, 5).T
    reward, last = numbers(9, 5).T, numbers(9)
    given = (reward, numbers(9, 5).T, last, ended, ended, numbers(9, 5).T, 0.99, 0.95, torch.ones(5, 9).bool())
    for ours, reference in zip(gae_in_core(*given), gae(*given), strict=True):
        assert torch.equal(ours, reference)
    assert torch.equal(discounted_sums_in_core(reward, ended, last, 0.9), discounted_sums(reward, ended, last, 0.9))


def test_the_core_computes_where_it_can(monkeypatch: pytest.MonkeyPatch):
    given = (numbers(3, 2), flags(0.2, 3, 2), numbers(2), 0.97)
    exact = [one.double() if one.is_floating_point() else one for one in given[:3]]
    monkeypatch.setattr("surefoot.learning.native_returns.core", lambda: pytest.fail("called"))
    assert reward_scaler.discounted_sums(*exact, 0.97).dtype == torch.float64
    with readable_only():
        reward_scaler.discounted_sums(*given)
    with pytest.raises(pytest.fail.Exception, match="called"):
        reward_scaler.discounted_sums(*given)
