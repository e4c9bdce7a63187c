"""Metrics of episodes against a count by hand, however the steps are cut into rollouts."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.data.records import Episode
from surefoot.rollout.episode_metrics import EpisodeMetrics, mean_of_known
from surefoot.rollout.episodes import EpisodeTracker
from surefoot.rollout.stepwise import StepwiseCollector
from surefoot.training.checkpoint import read_checkpoint, write_checkpoint
from tests.envs.measured import METRICS, ForgetfulEnv, MeasuredEnv
from tests.envs.tasks import counters
from tests.rollout.known_policies import KnownPolicy

NO = math.nan


def summed_up(values: list[list[float]]) -> list[float]:
    """An episode's numbers, from the steps `[last, mean, sum]` that it had."""
    last, pace, effort = zip(*values, strict=True)
    known = [value for value in pace if not math.isnan(value)]
    total = sum(value for value in effort if not math.isnan(value))
    return [last[-1], sum(known) / len(known) if known else NO, total]


def by_hand(values: np.ndarray, ended: np.ndarray, valid: np.ndarray) -> list[list[float]]:
    running: list[list[list[float]]] = [[] for _ in range(values.shape[1])]
    finished = []
    for step in range(len(values)):
        for row, steps in enumerate(running):
            if valid[step, row]:
                steps.append(values[step, row].tolist())
            if ended[step, row]:
                if valid[step, row]:
                    finished.append(summed_up(steps))
                steps.clear()
    return finished


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(1, 30), st.integers(1, 4), st.integers(0, 2**31), st.sampled_from([0.0, 0.3, 1.0]), st.data())
def test_they_are_those_counted_by_hand(steps, rows, seed, ends, data):
    generator = np.random.default_rng(seed)
    values = (generator.integers(-50, 50, (steps, rows, 3)) / 16).astype(np.float32)  # adds up exactly in any order
    values[generator.random(values.shape) < 0.3] = NO
    valid, ended = generator.random((steps, rows)) < 0.8, generator.random((steps, rows)) < ends
    cuts = sorted(data.draw(st.sets(st.integers(1, steps), max_size=4)))
    tracker, found = EpisodeMetrics(METRICS, rows), []
    for piece in zip(*(np.split(array, cuts) for array in (values, ended, valid)), strict=True):
        found += tracker.absorb(*piece).tolist()
        other = EpisodeMetrics(METRICS, rows)
        other.load_state(tracker.state(), np.ones(rows, dtype=bool))
        tracker = other
    np.testing.assert_array_equal(np.reshape(found, (-1, 3)), np.reshape(by_hand(values, ended, valid), (-1, 3)))


def test_running_episodes_of_another_checkpoint_have_unknown_totals():
    tracker, flags = EpisodeMetrics(METRICS, 2), np.ones((1, 2), dtype=bool)
    tracker.load_state(None, np.array([True, False]))
    first = tracker.absorb(np.ones((1, 2, 3), np.float32), flags, flags)
    np.testing.assert_array_equal(first, [[1, NO, NO], [1, 1, 1]])
    np.testing.assert_array_equal(tracker.absorb(np.ones((1, 2, 3), np.float32), flags, flags), np.ones((2, 3)))


def test_no_metrics_cost_nothing_and_say_nothing():
    flags = np.ones((3, 2), dtype=bool)
    assert EpisodeMetrics({}, 2).absorb(np.zeros((3, 2, 0), np.float32), flags, flags).shape == (6, 0)


def test_means_leave_out_what_has_no_value():
    assert mean_of_known([1.0, NO, 3.0]) == 2.0
    assert mean_of_known([NO]) is None
    assert mean_of_known([]) is None


def test_rollouts_tell_of_their_episodes():
    """Episodes of 3, 1 and 4 steps; the wind is 0.5 and the slopes come to 1."""
    env = counters(1, MeasuredEnv)
    policy = KnownPolicy(env.action_spec)
    rollout = StepwiseCollector(env, policy, 8, seed=4).collect(policy)
    stats, effort = rollout.stats, rollout.extras["env/effort"]
    expected = [
        {"score": 0.0, "pace": 2.0, "effort": 6 + 3 * 10.5},
        {"score": 1.0, "pace": 1.0, "effort": 1 + 10.5},
        {"score": 1.0, "pace": 2.0, "effort": 10 + 4 * 10.5},
    ]
    assert [episode.metrics for episode in stats.finished] == expected
    assert stats.finished[1:][0] == stats.recent[1] == Episode(100.5, 1, expected[1])
    assert list(rollout.extras) == ["env/score", "env/pace", "env/effort"]
    assert effort[:, 0].tolist() == [11.5, 12.5, 13.5, 11.5, 11.5, 12.5, 13.5, 14.5]
    assert rollout.learned_extras == (), "minibatches do not carry them"


@pytest.mark.parametrize("num_steps", [5, 8])
def test_they_go_on_bit_for_bit_in_mid_episode_with_parameters_set(num_steps, tmp_path):
    policy = KnownPolicy(counters(1).action_spec)
    collector = StepwiseCollector(counters(2, MeasuredEnv), policy, num_steps, seed=4)
    collector.rows.env.set_parameters({"wind": [0.1, 0.7], "slope": [0.3, 0.3]})
    collector.collect(policy)
    write_checkpoint(tmp_path / "rows.safetensors", collector.rows.state())
    other = StepwiseCollector(counters(2, MeasuredEnv), policy, num_steps, seed=4)
    other.rows.load_state(read_checkpoint(tmp_path / "rows.safetensors"))
    assert other.rows.is_exact
    for _ in range(3):
        ours, theirs = collector.collect(policy), other.collect(policy)
        np.testing.assert_array_equal(ours.reward, theirs.reward)
        np.testing.assert_array_equal(collector.rows.buffer.metrics, other.rows.buffer.metrics)
        assert repr(ours.stats.recent) == repr(theirs.stats.recent)
        assert ours.stats.finished.metrics["effort"].tolist() == theirs.stats.finished.metrics["effort"].tolist()


def test_envs_that_cannot_be_saved_keep_their_parameters(tmp_path):
    policy = KnownPolicy(counters(1).action_spec)
    collector = StepwiseCollector(counters(2, ForgetfulEnv), policy, 5, seed=4)
    collector.rows.env.set_parameters({"wind": [3, 3]})
    collector.collect(policy)
    write_checkpoint(tmp_path / "rows.safetensors", collector.rows.state())
    for rows in (2, 3):
        other = StepwiseCollector(counters(rows, ForgetfulEnv), policy, 5, seed=4)
        other.rows.load_state(read_checkpoint(tmp_path / "rows.safetensors"))
        assert not other.rows.is_exact
        assert other.collect(policy).reward.eq(3).all()


def test_a_tracker_reads_states_without_metrics():
    """As checkpoints of format 1 have them."""
    tracker = EpisodeTracker(counters(1, MeasuredEnv))
    tracker.load_state({"reward": np.ones(1), "length": np.ones(1, np.int64), "recent": [[2.0, 3]]})
    assert tracker.state()["recent"] == [[2.0, 3, {}]]
