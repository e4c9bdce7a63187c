"""RepeatPrevious pays the share of right answers: 1 to who remembers, one in `symbols` to who only sees."""

from itertools import product

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from surefoot.envs.tasks.registration import register_envs
from surefoot.envs.tasks.repeat_previous import RepeatPrevious


@pytest.fixture(scope="module", autouse=True)
def _own_tasks() -> None:
    register_envs()


def played(env, answer, seed):
    """The symbols that were shown, the rewards, and the last step; `answer` sees all symbols so far."""
    obs, _ = env.reset(seed=seed)
    shown, rewards, ended = [], [], False
    while not ended:
        assert obs in env.observation_space
        assert obs[:-1].sum() == 1.0
        shown.append(int(obs[:-1].argmax()))
        obs, reward, terminated, truncated, _ = env.step(np.int64(answer(shown)))
        rewards.append(reward)
        ended = terminated or truncated
    return shown, rewards, (obs, terminated, truncated)


def remembering(delay):
    return lambda shown: shown[-1 - delay] if len(shown) > delay else 0


def test_is_a_proper_env():
    check_env(RepeatPrevious(), skip_render_check=True)


@pytest.mark.parametrize(("symbols", "delay", "steps"), [(4, 4, 64), (2, 1, 2), (7, 3, 30), (32, 64, 100)])
def test_who_remembers_answers_everything(symbols, delay, steps):
    env = gym.make("RepeatPrevious-v0", symbols=symbols, delay=delay, episode_steps=steps)
    shown, rewards, (last, terminated, truncated) = played(env, remembering(delay), 8)
    assert len(shown) == steps < env.spec.max_episode_steps
    assert rewards == [0.0] * delay + [1.0 / (steps - delay)] * (steps - delay)
    assert sum(rewards) == pytest.approx(1.0)
    assert (terminated, truncated) == (True, False)
    assert not last.any(), "nothing is shown and nothing is left"


@pytest.mark.parametrize("off_by", [-1, 1])
def test_a_delay_that_is_off_by_one_is_chance(off_by):
    env = RepeatPrevious()
    shares = [sum(played(env, remembering(4 + off_by), seed)[1]) for seed in range(60)]
    assert 0.2 < np.mean(shares) < 0.3


@pytest.mark.parametrize("answers", list(product(range(3), repeat=3)))
def test_no_answer_by_what_is_seen_alone_beats_chance(answers):
    """All 27 of them, of three symbols."""
    env = RepeatPrevious(symbols=3, delay=2, episode_steps=62)
    share = np.mean([sum(played(env, lambda shown: answers[shown[-1]], seed)[1]) for seed in range(20)])
    assert 0.28 < share < 0.39


def test_all_symbols_are_as_likely():
    env = RepeatPrevious(symbols=5, episode_steps=1024)
    counts = np.bincount(played(env, lambda shown: 0, 1)[0], minlength=5)
    assert counts.min() > 150


def test_says_how_much_is_left():
    env = RepeatPrevious(episode_steps=8)
    obs = [env.reset(seed=0)[0], *[env.step(0)[0] for _ in range(8)]]
    assert [float(one[-1]) for one in obs] == [left / 8 for left in range(8, -1, -1)]


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"symbols": 1}, "symbols must be a whole number from 2 to 32, not 1"),
        ({"symbols": 33}, "symbols must be a whole number from 2 to 32, not 33"),
        ({"delay": 0}, "delay must be a whole number from 1 to 64, not 0"),
        ({"delay": 65}, "delay must be a whole number from 1 to 64, not 65"),
        ({"delay": "4"}, "delay must be a whole number from 1 to 64, not '4'"),
        ({"episode_steps": 4}, "episode_steps must be a whole number from 5 to 1024, not 4"),
        ({"delay": 64}, "episode_steps must be a whole number from 65 to 1024, not 64"),
        ({"episode_steps": 1025}, "episode_steps must be a whole number from 5 to 1024, not 1025"),
    ],
)
def test_options_out_of_range_are_refused(kwargs, message):
    with pytest.raises(gym.error.Error, match=message):
        gym.make("RepeatPrevious-v0", **kwargs)


def test_is_saved_in_the_middle_of_an_episode():
    env, other = RepeatPrevious(), RepeatPrevious()
    env.reset(seed=1)
    other.reset(seed=2)
    for _ in range(20):
        env.step(0)
    other.load_state(env.save_state())
    rewarded = 0
    for step in range(44):
        result, expected = other.step(step % 4), env.step(step % 4)
        np.testing.assert_array_equal(result[0], expected[0])
        assert result[1:] == expected[1:]
        rewarded += result[1] > 0.0
    assert rewarded > 0
    assert result[2]
