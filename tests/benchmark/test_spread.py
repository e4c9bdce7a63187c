"""Medians, ranges and ratios, by hand."""

import pytest

from surefoot.benchmark.rounds import Spread, ratio, spread


def test_median_and_range() -> None:
    assert spread([3.0, 1.0, 2.0]) == Spread(2.0, 1.0, 3.0)


def test_a_ratio_is_of_neighbors_not_of_medians() -> None:
    """The machine was three times as slow in the second round, for both: the ratio does not see it."""
    assert ratio([200.0, 60.0, 190.0], [100.0, 30.0, 95.0]) == Spread(2.0, 2.0, 2.0)
    # Rounds give 4, 1 and 2; the medians alone would give 200 / 100 = 2 without a spread.
    assert ratio([400.0, 50.0, 200.0], [100.0, 50.0, 100.0]) == Spread(2.0, 1.0, 4.0)


def test_a_ratio_needs_as_many_repeats_of_both() -> None:
    with pytest.raises(ValueError):
        ratio([1.0, 2.0], [1.0])


def test_texts() -> None:
    several, one = Spread(1000.0, 900.0, 1200.0), Spread(5.0, 5.0, 5.0)
    assert several.with_range() == "1,000 (900\N{EN DASH}1,200)"
    assert several.with_noise() == "1,000 ±20%"
    assert one.with_range(".2f") == one.with_noise(".2f") == "5.00"
