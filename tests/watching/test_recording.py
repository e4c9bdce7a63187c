"""What is recorded is what `evaluate` plays, for every kind of policy and env."""

import av
import gymnasium as gym
import numpy as np
import pytest
from PIL import Image

from surefoot.api import PPO
from surefoot.errors import CheckpointError, ConfigError, EnvError, VideoError
from surefoot.settings.layers import build_config
from surefoot.watching.stage import MOST_FPS
from tests.watching.drawn_envs import Blind, Broken, Lamp

SMALL = {"num_envs": 2, "num_steps": 8, "batch_size": 16, "hidden": 8}


def frames_of(path):
    with av.open(str(path)) as file:
        return [np.asarray(frame.to_image()) for frame in file.decode(video=0)]


@pytest.fixture(scope="module")
def lamp():
    return PPO(Lamp, seed=3, memory="gru", **SMALL)


@pytest.mark.parametrize("deterministic", [True, False])
def test_dicts_masks_and_memory_play_as_in_an_evaluation(lamp, tmp_path, deterministic):
    options = {"seed": 7, "deterministic": deterministic}
    evaluation = lamp.evaluate(10, **options)
    recording = lamp.record(tmp_path / "lamp.gif", 10, **options)
    assert recording.returns == evaluation.rewards
    assert recording.lengths == evaluation.lengths
    assert len(set(recording.returns)) == 10


def test_a_video_runs_in_the_time_of_the_env_and_shows_every_end(lamp, tmp_path):
    told = []
    recording = lamp.record(tmp_path / "lamp.mp4", 2, seed=7, tell=told.append)
    assert recording.path == tmp_path / "lamp.mp4"
    assert recording.fps == MOST_FPS == 30, "the env has 60 steps per second, so every second one is shown"
    shown = [moment for moment in told if moment.picture is not None]
    assert recording.num_frames == len(shown) == len(frames_of(recording.path))
    for episode, length in enumerate(recording.lengths):
        moments = [moment for moment in told if moment.episode == episode]
        assert [moment.step for moment in moments] == list(range(length + 1))
        steps = [(moment.step, int(moment.picture[0, 0, 0])) for moment in moments if moment.picture is not None]
        expected = sorted({*range(0, length + 1, 2), length})
        assert steps == [(step, step) for step in expected], "each picture is of its own step, the last one too"
        assert moments[-1].total_reward == recording.returns[episode]


def test_native_envs_are_recorded_through_their_twins(tmp_path):
    agent = PPO("CartPole-v1", seed=1, engine="native", **SMALL)
    evaluation = agent.evaluate(3, seed=5)
    recording = agent.record(tmp_path / "pole.mp4", 3, seed=5)
    assert (recording.returns, recording.lengths) == (evaluation.rewards, evaluation.lengths)
    assert frames_of(recording.path)[0].shape == (400, 600, 3)


def test_teams_are_recorded(tmp_path):
    agent = PPO("pettingzoo:mpe2.simple_spread_v3", seed=1, preset="none", max_episode_steps=5, **SMALL)
    recording = agent.record(tmp_path / "team.gif", seed=5)
    # Three rows of the first env are the first three of this evaluation.
    assert recording.returns[0] == pytest.approx(np.mean(agent.evaluate(3, seed=5).rewards), rel=1e-5)
    with Image.open(recording.path) as gif:
        assert gif.n_frames == recording.num_frames == 6


@pytest.mark.parametrize(
    "env_id", ["Market-v0", "RiskyCorridor-v0", "TMaze-v0", "RepeatPrevious-v0", "PendulumNoVel-v1"]
)
def test_own_tasks_draw_what_happens(env_id, tmp_path):
    agent = PPO(env_id, seed=1, **SMALL)
    pictures = []
    agent.record(tmp_path / "task.gif", seed=2, max_steps=12, deterministic=False, tell=pictures.append)
    taken = [moment.picture for moment in pictures if moment.picture is not None]
    assert len(taken) >= 3
    assert any((taken[0] != picture).any() for picture in taken[1:])
    assert gym.make(env_id).render_mode is None


def test_long_episodes_are_cut_and_the_next_one_is_another(tmp_path):
    agent = PPO("CartPole-v1", seed=1, **SMALL)
    starts = []
    recording = agent.record(
        tmp_path / "cut.gif",
        9,
        max_steps=2,
        tell=lambda moment: starts.append(moment.picture) if not moment.step else 0,
    )
    assert recording.lengths == (2,) * 9
    assert any((starts[0] != start).any() for start in starts[1:2]), "row 0 plays two of the nine episodes"


def test_arguments_of_evaluations_apply(tmp_path):
    agent = PPO("Pendulum-v1", seed=1, **{"env.kwargs": {"g": 10.0}, "env.eval_kwargs": {"g": 1.0}}, **SMALL)
    recording = agent.record(tmp_path / "light.gif", seed=5)
    assert recording.returns == pytest.approx(agent.evaluate(1, seed=5).rewards)


def test_pools_are_recorded_and_returns_are_those_of_evaluate(tmp_path):
    agent = PPO("envpool:CartPole-v1", seed=1, preset="none", **SMALL)
    recording = agent.record(tmp_path / "pool.gif", 10, seed=5)  # two rows of the evaluation play two episodes
    assert recording.returns == agent.evaluate(10, seed=5).rewards
    with Image.open(recording.path) as gif:
        assert gif.n_frames == recording.num_frames > 10


def test_games_of_a_pool_are_recorded(tmp_path):
    agent = PPO("envpool:Pong-v5", seed=1, preset="none", **SMALL)
    recording = agent.record(tmp_path / "pong.gif", seed=5, max_steps=4)
    with Image.open(recording.path) as gif:
        assert gif.n_frames == recording.num_frames > 1
        assert gif.height / gif.width == pytest.approx(210 / 160, rel=0.05)


def test_a_given_env_is_used_and_stays_open(lamp, tmp_path):
    env = Lamp("rgb_array", size=300)
    recording = lamp.record(tmp_path / "own.mp4", env=env)
    assert frames_of(recording.path)[0].shape == (300, 300, 3)
    env.reset()


@pytest.mark.parametrize(
    ("env", "problem"),
    [
        (Blind, "its metadata lists the render modes ansi"),
        (lambda: Lamp(), r"was created with render_mode=None.*def make\(render_mode=None\)"),
        (Lamp(), "was created with render_mode=None"),
        (gym.make_vec("CartPole-v1", 2), "a vector env cannot be recorded; pass one env"),
        ("FrozenLake-v1", "space"),
    ],
)
def test_what_cannot_be_recorded_is_refused(lamp, env, problem, tmp_path):
    with pytest.raises((VideoError, EnvError), match=problem):
        lamp.record(tmp_path / "no.gif", env=env)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("drawing", "problem"),
    [
        (None, "got NoneType"),
        (np.zeros((4, 4, 3)), r"got an array \(4, 4, 3\) of float64"),
        (np.zeros(4, np.uint8), r"got an array \(4,\) of uint8"),
        (np.zeros((0, 0, 3), np.uint8), "an image of 0 x 0 pixels; a video needs 1 to 33,177,600"),
        (np.zeros((64, 0), np.uint8), "an image of 0 x 64 pixels"),
        (np.broadcast_to(np.uint8(0), (12000, 12000, 3)), "an image of 12000 x 12000 pixels"),
        (RuntimeError("no paint"), "could not be drawn: RuntimeError: no paint"),
        (SystemExit(0), "could not be drawn: SystemExit"),
    ],
)
def test_what_is_no_picture_is_refused(lamp, drawing, problem, tmp_path):
    env = Broken("rgb_array")
    env.drawing = drawing
    with pytest.raises(VideoError, match=problem):
        lamp.record(tmp_path / "no.gif", env=env)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("shape", [(1, 20000, 3), (20000, 2, 3)])
def test_sizes_that_a_format_does_not_have_are_named_with_the_one_that_has_them(lamp, shape, tmp_path):
    env = Broken("rgb_array")
    env.drawing = np.zeros(shape, np.uint8)
    with pytest.raises(VideoError, match=r"frames of .* pixels; write a \.gif"):
        lamp.record(tmp_path / "no.mp4", env=env)
    assert list(tmp_path.iterdir()) == []
    lamp.record(tmp_path / "yes.gif", env=env, max_steps=2)


def test_gray_and_transparent_pictures_are_converted(lamp, tmp_path):
    for drawing in (np.full((300, 300), 90, np.uint8), np.full((300, 300, 1), 90, np.uint8)):
        env = Broken("rgb_array")
        env.drawing = drawing
        assert frames_of(lamp.record(tmp_path / "gray.mp4", env=env).path)[0][-1, -1] == pytest.approx(90, abs=3)
    env.drawing = np.full((300, 300, 4), 90, np.uint8)
    lamp.record(tmp_path / "clear.mp4", env=env)


def test_an_agent_of_an_env_instance_needs_another(tmp_path):
    agent = PPO(Lamp(), seed=1, num_steps=16, batch_size=16, hidden=8)
    with pytest.raises(EnvError, match=r"pass an env: record\(env=...\)"):
        agent.record(tmp_path / "no.gif")


def test_an_untrusted_env_is_not_imported(tmp_path):
    agent = PPO("CartPole-v1", seed=1, **SMALL)
    agent.config = build_config(agent.config.model_dump(mode="json"), {"env.id": "nowhere_to_be_found:Env-v0"})
    agent.save(tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match="wants to import 'nowhere_to_be_found:Env-v0'"):
        PPO.load(tmp_path / "model.safetensors").record(tmp_path / "no.gif")


@pytest.mark.parametrize("argument", [{"episodes": 0}, {"seed": -1}, {"max_steps": 0}])
def test_bad_arguments_are_refused(lamp, argument, tmp_path):
    (name,) = argument
    with pytest.raises(ConfigError, match=f"record: {name}"):
        lamp.record(tmp_path / "no.gif", **argument)


def test_a_window_needs_a_display(lamp, monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(VideoError, match=r"there is no display.*--video FILE\.mp4"):
        lamp.watch()
