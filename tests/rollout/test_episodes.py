"""Episode statistics against a row-by-row count, however the steps are cut into rollouts."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.data.records import Episode, RolloutStats
from surefoot.envs.protocol.spaces import obs_spec
from surefoot.rollout.episodes import WINDOW, EpisodeTracker, count_out_of_bounds
from tests.envs.tasks import FORMS, counters

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]


def absorb(tracker: EpisodeTracker, reward: np.ndarray, ended: np.ndarray, valid: np.ndarray) -> RolloutStats:
    obs = torch.zeros(*reward.shape, 5)
    flags = (torch.from_numpy(array) for array in (reward.astype(np.float32), ended, valid))
    return tracker.absorb(obs, *flags)


def counted_by_hand(reward: np.ndarray, ended: np.ndarray, valid: np.ndarray) -> list[Episode]:
    """Step by step and row by row."""
    num_rows = reward.shape[1]
    total, length, finished = [0.0] * num_rows, [0] * num_rows, []
    for step in range(len(reward)):
        for row in range(num_rows):
            if valid[step, row]:
                total[row] += float(np.float32(reward[step, row]))
                length[row] += 1
            if ended[step, row]:
                finished.append(Episode(total[row], length[row]))
                total[row], length[row] = 0.0, 0
    return finished


@st.composite
def histories(draw: st.DrawFn) -> tuple[Arrays, list[int]]:
    """Rewards, ends (of valid steps only) and valid flags `[T, N]`, and where rollouts begin."""
    steps, rows, seed = draw(st.integers(1, 30)), draw(st.integers(1, 4)), draw(st.integers(0, 2**31))
    generator = np.random.default_rng(seed)
    valid = generator.random((steps, rows)) < draw(st.sampled_from([0.5, 1.0]))
    ended = valid & (generator.random((steps, rows)) < draw(st.sampled_from([0.0, 0.3, 1.0])))
    # Sixteenths add up exactly in any order.
    reward = generator.integers(-50, 50, (steps, rows)) / 16
    cuts = draw(st.lists(st.integers(1, steps), max_size=4, unique=True).map(sorted))
    return (reward, ended, valid), [cut for cut in cuts if cut < steps]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(histories())
def test_finished_episodes_are_those_counted_by_hand(history):
    arrays, cuts = history
    tracker = EpisodeTracker(counters(arrays[0].shape[1]))
    pieces = zip(*(np.split(array, cuts) for array in arrays), strict=True)
    stats = [absorb(tracker, *piece) for piece in pieces]
    expected = counted_by_hand(*arrays)
    assert [episode for part in stats for episode in part.finished] == expected
    assert list(stats[-1].recent) == expected[-WINDOW:]
    assert sum(part.num_steps for part in stats) == arrays[2].sum()


def test_an_episode_over_three_rollouts():
    tracker, no = EpisodeTracker(counters(1)), np.zeros((2, 1), dtype=bool)
    assert absorb(tracker, np.array([[1], [2]]), no, ~no).finished == ()
    assert absorb(tracker, np.array([[4], [8]]), no, ~no).finished == ()
    stats = absorb(tracker, np.array([[16], [32]]), np.array([[True], [False]]), ~no)
    assert stats.finished == (Episode(31.0, 5),)
    stats = absorb(tracker, np.array([[64], [128]]), np.array([[False], [True]]), ~no)
    assert stats.finished == (Episode(224.0, 3),), "what followed the end belongs to the next episode"


def test_episodes_come_in_the_order_in_which_they_ended():
    ended = np.array([[False, False, True], [True, False, False], [False, True, True]])
    reward = np.array([[1, 10, 100], [2, 20, 200], [3, 30, 300]])
    stats = absorb(EpisodeTracker(counters(3)), reward, ended, np.ones_like(ended))
    assert stats.finished == (Episode(100, 1), Episode(3, 2), Episode(60, 3), Episode(500, 2))


def test_the_window_holds_the_last_hundred():
    tracker, ones = EpisodeTracker(counters(1)), np.ones((70, 1), dtype=bool)
    first = absorb(tracker, np.arange(70)[:, None], ones, ones)
    assert len(first.recent) == 70
    second = absorb(tracker, np.arange(70, 140)[:, None], ones, ones)
    assert len(second.finished) == 70
    assert [episode.total_reward for episode in second.recent] == list(range(40, 140))


def test_long_sums_do_not_lose_small_rewards():
    """In float32, a tenth added ten thousand times to a running sum is off by 0.1."""
    tracker, steps = EpisodeTracker(counters(1)), 10_000
    ended = np.arange(steps)[:, None] == steps - 1
    stats = absorb(tracker, np.full((steps, 1), 0.1), ended, np.ones_like(ended))
    assert stats.finished[0].total_reward == pytest.approx(float(np.float32(0.1)) * steps, rel=1e-9)


def test_invalid_steps_count_nowhere():
    reward, ended = np.full((4, 1), 5.0), np.array([[False], [True], [False], [True]])
    stats = absorb(EpisodeTracker(counters(1)), reward, ended, np.array([[True], [True], [False], [True]]))
    assert stats.finished == (Episode(10, 2), Episode(5, 1))
    assert stats.num_steps == 3


def test_state_goes_on_in_another_tracker():
    no = np.zeros((2, 2), dtype=bool)
    tracker, other = EpisodeTracker(counters(2)), EpisodeTracker(counters(2))
    absorb(tracker, np.array([[1, 10], [2, 20]]), np.array([[True, False], [False, False]]), ~no)
    other.load_state(tracker.state())
    for each in (tracker, other):
        stats = absorb(each, np.array([[4, 40], [8, 80]]), np.array([[True, True], [False, False]]), ~no)
        assert stats.finished == (Episode(6, 2), Episode(70, 3))
        assert stats.recent == (Episode(1, 1), Episode(6, 2), Episode(70, 3))


def test_with_another_number_of_rows_only_finished_episodes_are_kept():
    tracker, wider = EpisodeTracker(counters(1)), EpisodeTracker(counters(3))
    absorb(tracker, np.array([[1], [2]]), np.array([[True], [False]]), np.ones((2, 1), dtype=bool))
    wider.load_state(tracker.state())
    stats = absorb(wider, np.ones((1, 3)), np.ones((1, 3), dtype=bool), np.ones((1, 3), dtype=bool))
    assert stats.recent == (Episode(1, 1), Episode(1, 1), Episode(1, 1), Episode(1, 1))


def test_a_restart_forgets_running_episodes():
    tracker, no = EpisodeTracker(counters(1)), np.zeros((1, 1), dtype=bool)
    absorb(tracker, np.array([[7.0]]), no, ~no)
    tracker.forget_running()
    assert absorb(tracker, np.array([[1.0]]), ~no, ~no).finished == (Episode(1, 1),)


def test_elements_outside_their_box_are_counted_over_all_parts():
    spec = {"a": obs_spec(FORMS["bytes"].space), "b": obs_spec(FORMS["multi_binary"].space)}
    spec |= {"open": obs_spec(FORMS["vector"].space), "choice": obs_spec(FORMS["discrete"].space)}
    obs = {"a": torch.zeros(2, 3, 3), "b": torch.zeros(2, 3, 17), "open": torch.full((2, 3, 5), 1e9)}
    obs["choice"] = torch.full((2, 3), 999)
    valid = torch.ones(2, 3, dtype=torch.bool)
    assert count_out_of_bounds(obs, valid, spec) == 0
    obs["a"][0, 1] = torch.tensor([256.0, -1.0, 255.0])
    obs["b"][1, 2, 5] = 2
    assert count_out_of_bounds(obs, valid, spec) == 3
    valid[0, 1] = False
    assert count_out_of_bounds(obs, valid, spec) == 1
