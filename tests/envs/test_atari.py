"""Atari games of ale-py with the standard preprocessing, beside EnvPool's, which was written by others."""

import sys
from typing import Any

import envpool
import numpy as np
import pytest
from gymnasium import spaces

from surefoot.data.tree import tree_first
from surefoot.envs.adapters.atari import AtariFactory, is_atari
from surefoot.envs.make import env_factory, make_vec_env
from surefoot.envs.protocol import step_all
from surefoot.errors import EnvError
from surefoot.settings.config import EnvConfig, RolloutConfig
from tests.envs.tasks import opened

ALIKE = {"noop_max": 0, "repeat_action_probability": 0.0}
"""What makes ale-py's games begin and react as EnvPool's do with `noop_max: 1`."""


def game(env_id: str = "ALE/Pong-v5", **kwargs: Any) -> Any:
    return env_factory(env_id, EnvConfig(kwargs=ALIKE | kwargs))()


@pytest.mark.parametrize(
    ("name", "steps", "options"),
    [
        ("Pong", 250, {}),
        ("SpaceInvaders", 120, {"reward_clip": True}),
        ("Breakout", 150, {"frame_skip": 2, "stack_num": 2, "img_height": 42, "img_width": 50}),
    ],
)
def test_a_game_looks_and_pays_as_envpools(name, steps, options):
    one, pool = (
        game(f"ALE/{name}-v5", **options),
        envpool.make_gymnasium(f"{name}-v5", num_envs=1, noop_max=1, **options),
    )
    assert one.action_space.n == pool.action_space.n
    obs, expected = one.reset(seed=0)[0], pool.reset()[0][0]
    earned, generator = 0.0, np.random.default_rng(1)
    for _ in range(steps):
        assert np.abs(obs[-1].astype(int) - expected[-1]).max() <= 1  # OpenCV rounds averages in whole numbers
        action = int(generator.integers(one.action_space.n))
        obs, reward, *ended, info = one.step(action)
        batch, rewards, terminated, truncated, infos = pool.step(np.array([action]))
        expected = batch[0]
        assert (reward, *ended) == (rewards[0], terminated[0], truncated[0])
        assert info["reward"] == infos["reward"][0], "unclipped"
        earned += abs(reward)
    assert earned


def test_what_an_agent_sees(capfd):
    one = game()
    assert capfd.readouterr() == ("", ""), "no banner of the emulator"
    assert one.observation_space == spaces.Box(0, 255, (4, 84, 84), np.uint8)
    first, _ = one.reset(seed=0)
    assert (first == first[0]).all(), "an episode begins with its first frame four times"
    later = [one.step(2)[0] for _ in range(5)]
    assert np.array_equal(later[-1][:3], later[-2][1:]), "the stack moves by one"
    assert not np.array_equal(later[-1][3], later[-1][2])


def test_games_begin_differently_and_seeds_repeat_them():
    one, seen = game(noop_max=30), []
    for seed in (1, 1, 2):
        one.reset(seed=seed)
        seen.append([one.step(0)[0] for _ in range(20)])  # until the ball is there
    assert np.array_equal(seen[0], seen[1])
    assert not np.array_equal(seen[0], seen[2])


def lives_of(one: Any, steps: int) -> tuple[list[int], int]:
    """Lives before each episode, and the number of episodes that ended, while nobody moves."""
    starts, ends = [one.reset(seed=0)[1]["lives"]], 0
    for _ in range(steps):
        *_, terminated, truncated, _ = one.step(1)  # FIRE
        if terminated or truncated:
            ends += 1
            starts.append(one.reset()[1]["lives"])
    return starts, ends


def test_a_lost_life_ends_an_episode_but_not_the_game():
    starts, ends = lives_of(game("ALE/Breakout-v5", episodic_life=True), 250)
    assert starts[:6] == [5, 4, 3, 2, 1, 5], "the fifth life ends the game"
    whole, games = lives_of(game("ALE/Breakout-v5"), 250)
    assert set(whole) == {5}
    assert ends >= 5 > games >= 1


def test_a_time_limit_counts_steps_of_the_agent():
    one = env_factory("ALE/Pong-v5", EnvConfig(max_episode_steps=3))()
    one.reset(seed=0)
    assert [one.step(0)[3] for _ in range(3)] == [False, False, True]
    one.reset()
    assert one.unwrapped.ale.getEpisodeFrameNumber() <= 31, "another game, not more of the same"


@pytest.mark.parametrize("engine", ["local", "processes"])
def test_engines_step_games(engine):
    rollout = RolloutConfig(engine=engine, workers=1)
    env = make_vec_env("PongNoFrameskip-v4", EnvConfig(kwargs={"img_height": 20, "img_width": 16}), 2, 0, rollout)
    slot = opened(env)
    step_all(env, np.array([2, 3]), slot)
    assert tree_first(slot.obs).shape == (2, 4, 20, 16)
    assert tree_first(slot.obs).dtype == np.uint8
    env.close()


def test_evaluation_has_its_own_arguments():
    config = EnvConfig(
        id="ALE/Breakout-v5", kwargs={"reward_clip": True, "stack_num": 2}, eval_kwargs={"reward_clip": False}
    )
    made = env_factory(config.id, config.for_evaluation)
    assert isinstance(made, AtariFactory)
    assert made.kwargs == {"reward_clip": False, "stack_num": 2}
    assert config.kwargs["reward_clip"], "training keeps its own"


def test_ids():
    assert all(map(is_atari, ("ALE/Pong-v5", "ale_py:ALE/Pong-v5", "PongNoFrameskip-v4", "ale_py:PongNoFrameskip-v0")))
    assert not any(map(is_atari, ("Pong-v5", "envpool:Pong-v5", "CartPole-v1", "minigrid:MiniGrid-Empty-5x5-v0")))
    assert env_factory("ale_py:ALE/Pong-v5", EnvConfig())().observation_space.shape == (4, 84, 84)


def test_the_env_of_ale_py_itself_is_one_argument_away():
    raw = env_factory("ALE/Pong-v5", EnvConfig(kwargs={"obs_type": "ram", "frameskip": 2}))()
    assert raw.observation_space.shape == (128,)


@pytest.mark.parametrize(
    ("env_id", "kwargs", "message"),
    [
        ("ALE/Pung-v5", {}, "unknown environment 'ALE/Pung-v5'; did you mean 'ALE/Pong-v5'"),
        ("ALE/Pong-v5", {"frameskip": 3}, "frame_skip"),
        ("ALE/Pong-v5", {"frame_skip": 0}, "frame_skip must be a whole number of at least 1, not 0"),
        ("ALE/Pong-v5", {"speed": 2}, "does not accept env.kwargs"),
    ],
)
def test_mistakes_are_named(env_id, kwargs, message):
    with pytest.raises(EnvError, match=message):
        env_factory(env_id, EnvConfig(kwargs=kwargs))()


def test_without_ale_py_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ale_py", None)
    with pytest.raises(EnvError, match=r"'ALE/Pong-v5' requires ale-py; run `pip install .*\.\[atari\]'"):
        env_factory("ALE/Pong-v5", EnvConfig())
