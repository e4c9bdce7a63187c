"""Smoothing, thinning and spread, by numbers worked out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.inspection.report.curves import Curve, smooth, spread, thin


def curve(steps: list[float], values: list[float]) -> Curve:
    """At 10 steps a second."""
    return Curve(np.array(steps, float), np.array(steps, float) / 10, np.array(values, float))


def test_the_window_narrows_at_the_ends():
    # 5 values and a share of 0.8: two to either side in the middle, one next to the ends, none at the ends.
    smoothed = smooth(np.array([0.0, 3.0, 0.0, 12.0, 5.0]), 0.8)
    assert smoothed.tolist() == [0.0, 1.0, 4.0, pytest.approx(17 / 3), 5.0]


def test_no_share_changes_nothing():
    values = np.array([1.0, -2.0, 7.0])
    assert smooth(values, 0.0).tolist() == values.tolist()


@given(st.integers(1, 60), st.floats(0.01, 1.0), st.floats(-5, 5), st.floats(-5, 5))
def test_smoothing_does_not_lag(count, share, start, slope):
    """A straight line stays where it is."""
    line = start + slope * np.arange(count)
    np.testing.assert_allclose(smooth(line, share), line, atol=1e-9)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=400), st.integers(4, 50))
def test_thinning_keeps_ends_and_extremes(values, limit):
    array = np.array(values)
    kept = thin(array, limit)
    assert len(kept) <= max(limit, 0)
    assert (np.diff(kept) > 0).all()
    assert kept[0] == 0
    assert kept[-1] == len(values) - 1
    assert array[kept].min() == array.min()
    assert array[kept].max() == array.max()


def test_what_is_short_is_left_alone():
    assert thin(np.zeros(7), 7).tolist() == [0, 1, 2, 3, 4, 5, 6]


def test_spread_is_taken_at_the_same_steps():
    # The second run is at 3 when the first is at 20: halfway between its own records.
    found = spread([curve([10, 20, 30], [1, 2, 3]), curve([10, 30], [2, 4])], 100)
    assert found.steps.tolist() == [10, 20, 30]
    assert found.mean.tolist() == [1.5, 2.5, 3.5]
    assert found.low.tolist() == [1, 2, 3]
    assert found.high.tolist() == [2, 3, 4]
    assert found.seconds.tolist() == [1, 2, 3]


def test_spread_goes_on_without_the_run_that_stopped_early():
    curves = [curve([10, 20, 30], [1, 1, 1]), curve([10, 20, 30], [3, 3, 3]), curve([10], [8])]
    found = spread(curves, 100)
    assert found.steps.tolist() == [10, 20, 30]
    assert found.mean.tolist() == [4, 2, 2]


def test_one_run_alone_is_no_spread():
    found = spread([curve([10, 20, 30], [1, 1, 1]), curve([10, 20], [3, 3])], 100)
    assert found.steps.tolist() == [10, 20]


def test_runs_that_never_overlap():
    found = spread([curve([10, 20, 30], [1, 2, 3]), curve([50], [9])], 100)
    assert found.mean.tolist() == [1, 2, 3]


def test_a_long_spread_has_so_many_points():
    steps = list(range(1, 5001))
    found = spread([curve(steps, steps), curve(steps, steps)], 300)
    assert len(found.steps) == 300
    np.testing.assert_allclose(found.mean, found.steps)
