"""Aggregates by numbers worked out by hand, and the laws of their intervals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.statistics.aggregates import aggregate, improvement, mean_band, trimmed_mean

TASK = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=8)


def test_one_task_by_hand():
    # Of eight runs, two are cut at either end: the middle ones are 3, 4, 5, 6.
    found = aggregate([[5, 1, 100, 4, 3, -50, 6, 7]])
    assert found.mean.value == 76 / 8
    assert found.iqm.value == 18 / 4
    assert found.median.value == 4.5


def test_several_tasks_by_hand():
    # Means of the tasks: 2, 10, 30. All seven runs in order: 1 2 3 10 29 30 31, of which one is cut at either end.
    found = aggregate([[1, 2, 3], [10], [29, 30, 31]])
    assert found.mean.value == 14
    assert found.median.value == 10
    assert found.iqm.value == pytest.approx((2 + 3 + 10 + 29 + 30) / 5)


def test_fewer_than_four_runs_are_not_trimmed():
    assert trimmed_mean(np.array([0.0, 1.0, 8.0])) == 3
    assert trimmed_mean(np.array([0.0, 1.0, 3.0, 80.0])) == 2


def test_the_interval_of_two_runs_is_known_exactly():
    """The mean of a resample is low, middle or high with probability 1/4, 1/2, 1/4: the bounds are the ends."""
    assert aggregate([[2.0, 4.0]]).mean[1:] == (2.0, 4.0)
    # Of three runs, 27 resamples: one has a mean of 0, one of 9, more than 2.5% each.
    assert aggregate([[0.0, 3.0, 9.0]]).mean[1:] == (0.0, 9.0)


def test_the_interval_of_many_runs_is_that_of_the_normal_distribution():
    values = np.random.default_rng(1).normal(5.0, 2.0, 100)
    found = aggregate([values.tolist()]).mean
    error = 1.96 * values.std() / np.sqrt(100)
    assert found.low == pytest.approx(values.mean() - error, abs=0.03)
    assert found.high == pytest.approx(values.mean() + error, abs=0.03)


def test_the_bootstrap_is_stratified():
    """Every resample has as many runs of each task as there are, so constant tasks leave no doubt."""
    found = aggregate([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]])
    assert found.mean == (0.5, 0.5, 0.5)
    assert found.iqm.low == found.iqm.high


def test_improvement_by_hand():
    # 9 pairs: 2 beats 1; 4 beats 1, 3; 5 beats 1, 3 and ties with 5: 5.5 of 9.
    assert improvement([[2, 4, 5]], [[1, 3, 5]]).value == pytest.approx(5.5 / 9)
    # Over tasks, the mean of 1 and 0.5.
    assert improvement([[2, 3], [1]], [[1, 1], [1]]).value == 0.75
    assert improvement([[5, 6]], [[1, 2]]) == (1, 1, 1)


@settings(max_examples=25)
@given(st.lists(st.tuples(TASK, TASK), min_size=1, max_size=3))
def test_improvement_is_a_probability_and_its_opposite_the_rest(tasks):
    ours, theirs = ([pair[side] for pair in tasks] for side in (0, 1))
    found = improvement(ours, theirs)
    assert 0 <= found.low <= found.high <= 1
    assert found.value + improvement(theirs, ours).value == pytest.approx(1)


@settings(max_examples=25)
@given(st.lists(TASK, min_size=1, max_size=3), st.floats(-100, 100), st.floats(0.1, 10))
def test_aggregates_scale_and_shift_with_the_scores(scores, shift, scale):
    moved = aggregate([[scale * one + shift for one in own] for own in scores])
    for name in ("mean", "iqm", "median"):
        before, after = getattr(aggregate(scores), name), getattr(moved, name)
        np.testing.assert_allclose(after, scale * np.array(before) + shift, rtol=1e-6, atol=1e-6)


@settings(max_examples=25)
@given(st.lists(TASK, min_size=1, max_size=3))
def test_intervals_stay_within_the_scores_and_are_the_same_every_time(scores):
    found = aggregate(scores)
    everything = [one for own in scores for one in own]
    for figure in (found.mean, found.iqm, found.median):
        assert min(everything) - 1e-9 <= figure.low <= figure.high <= max(everything) + 1e-9
    assert aggregate(scores) == found


def test_a_band_is_the_interval_at_each_point():
    values = np.array([[0.0, 5.0], [3.0, 5.0], [9.0, 5.0]])
    low, high = mean_band(values)
    assert (low.tolist(), high.tolist()) == ([0.0, 5.0], [9.0, 5.0])
    several = np.random.default_rng(0).normal(size=(10, 1))
    low, high = mean_band(several)
    assert several.min() < low[0] < several.mean() < high[0] < several.max()
    assert [edge.tolist() for edge in mean_band(values[:2])] == [[0.0, 5.0], [3.0, 5.0]]
