"""Statistics of a rollout in the core equal their references up to the rounding of float32."""

import math
from inspect import unwrap

import pytest
import torch
from torch import Tensor

from surefoot.data.moments import normalized
from surefoot.learning import watch
from surefoot.learning.native_statistics import fit_in_core, normalized_in_core
from surefoot.learning.scorer import _normalized

fit = unwrap(watch.fit)
"""The reference."""
SHAPES = [(1, 1), (1, 2), (7, 3), (128, 8), (33, 65)]
ROUNDING = 8 * torch.finfo(torch.float32).eps
"""The reference adds squares in float32, pairwise: one rounding for each doubling of their number."""


def numbers(*shape: int) -> Tensor:
    return 20 * torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape))) + 3


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("share_valid", [1.0, 0.8, 0.0])
def test_normalized_advantages(shape: tuple[int, int], share_valid: float) -> None:
    valid = torch.rand(shape, generator=torch.Generator().manual_seed(1)) < share_valid
    given = numbers(*shape)
    expected = normalized(given, valid)
    torch.testing.assert_close(normalized_in_core(given, valid), expected, rtol=ROUNDING, atol=ROUNDING)
    if valid.sum() > 1:
        assert not torch.allclose(expected, given)
    transposed = normalized_in_core(given.T, valid.T)
    torch.testing.assert_close(transposed, expected.T, rtol=ROUNDING, atol=ROUNDING)


def test_what_is_not_valid_does_not_count() -> None:
    given, valid = torch.tensor([1.0, 5.0, math.nan, 3.0]), torch.tensor([True, True, False, True])
    assert torch.equal(normalized_in_core(given, valid)[valid], normalized_in_core(given[valid], valid[valid]))
    assert normalized_in_core(given, torch.ones(4).bool()).isnan().all(), "a valid NaN is not hidden"


def test_equal_numbers_become_zeros() -> None:
    assert normalized_in_core(torch.full((128, 8), 0.1), torch.ones(128, 8).bool()).tolist() == [[0.0] * 8] * 128


def test_other_types_take_the_reference() -> None:
    given, valid = numbers(9).double(), torch.ones(9).bool()
    assert torch.equal(_normalized(given, valid), normalized(given, valid))


@pytest.mark.parametrize("count", [2, 21, 1024, 2145])
def test_the_fit_of_values(count: int) -> None:
    returns, noise = numbers(count), numbers(count, 1)[:, 0]
    for values in (noise, returns + 0.1 * noise, returns, torch.zeros(count)):
        explained, error = fit(values, returns)
        assert fit_in_core(values, returns) == pytest.approx((explained, error), rel=1e-9, abs=1e-12)


def test_constant_returns_have_no_variance_to_explain() -> None:
    constant, values = torch.full((100,), 0.1), numbers(100)
    for found in (fit(values, constant), fit_in_core(values, constant)):
        assert math.isnan(found[0])
        assert found[1] == pytest.approx(float(values.double().std(correction=0)) / 0.1, rel=1e-6)
