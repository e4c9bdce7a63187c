"""Laws of the CVaR."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.statistics.risk import cvar, tail_weights

numbers = st.floats(-1e3, 1e3, allow_nan=False)
samples = st.lists(numbers, min_size=1, max_size=40)
alphas = st.floats(1e-3, 1)
ROUNDING = 1e-9


@given(samples, alphas, alphas)
def test_it_grows_with_alpha(values, first, second):
    small, large = sorted((first, second))
    assert cvar(values, small) <= cvar(values, large) + ROUNDING


@given(samples, alphas)
def test_it_lies_between_the_minimum_and_both_the_mean_and_the_quantile(values, alpha):
    found = cvar(values, alpha)
    assert min(values) <= found
    assert found <= np.mean(values) + ROUNDING
    assert found <= np.quantile(values, alpha) + ROUNDING


@given(samples, st.floats(5e-324, 1, exclude_min=False))
def test_at_both_ends_it_is_the_minimum_and_the_mean(values, alpha):
    assert cvar(values, alpha / len(values) or alpha) == min(values)
    assert cvar(values, 1) == pytest.approx(np.mean(values), abs=ROUNDING)


@given(samples, alphas, numbers, st.floats(1e-3, 1e3))
def test_it_moves_and_scales_with_the_values(values, alpha, shift, scale):
    moved = scale * np.array(values) + shift
    assert cvar(moved, alpha) == pytest.approx(scale * cvar(values, alpha) + shift, abs=1e-6)


@given(samples, alphas, st.randoms(use_true_random=False))
def test_order_does_not_matter(values, alpha, shuffler):
    shuffled = list(values)
    shuffler.shuffle(shuffled)
    assert cvar(shuffled, alpha) == pytest.approx(float(cvar(values, alpha)), abs=ROUNDING)


@given(st.lists(st.tuples(numbers, st.integers(0, 5)), min_size=1, max_size=12), alphas)
def test_a_weight_is_as_many_copies(weighted, alpha):
    copies = [value for value, weight in weighted for _ in range(weight)]
    if copies:
        values, weights = zip(*weighted, strict=True)
        assert cvar(values, alpha, weights) == pytest.approx(float(cvar(copies, alpha)), abs=ROUNDING)


@given(st.integers(1, 50), alphas)
def test_the_tail_is_an_alpha_share_of_whole_atoms_and_one_fraction(count, alpha):
    tail = tail_weights(np.ones(count), alpha)
    assert tail.sum() == pytest.approx(alpha * count)
    assert (np.diff(tail) <= 0).all()
    assert ((tail > 0) & (tail < 1)).sum() <= 1


@given(st.lists(st.tuples(numbers, numbers, numbers), min_size=1, max_size=8), alphas)
def test_rows_of_a_batch_are_independent(rows, alpha):
    assert cvar(rows, alpha).tolist() == [float(cvar(row, alpha)) for row in rows]
