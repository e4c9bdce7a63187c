"""Pendulums, arms and the swimmer against Gymnasium's own: the same numbers across resets, options and saved states."""

from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from surefoot.envs import native
from surefoot.errors import NativeError
from surefoot.verification.contract import float64_tolerance
from tests.parity.stepping import Actions, compare, policy_actions, random_actions

ENVS = ["InvertedPendulum-v5", "InvertedDoublePendulum-v5", "Reacher-v5", "Pusher-v5", "Swimmer-v5"]
ASSETS = Path(gym.__file__).parent / "envs" / "mujoco" / "assets"

OPTIONS = [
    ("InvertedPendulum-v5", {"frame_skip": 3}),
    ("InvertedPendulum-v5", {"reset_noise_scale": 0.15}),
    ("InvertedPendulum-v5", {"reset_noise_scale": 0}),
    ("InvertedDoublePendulum-v5", {"frame_skip": 2}),
    ("InvertedDoublePendulum-v5", {"healthy_reward": 0.3}),
    ("InvertedDoublePendulum-v5", {"reset_noise_scale": 0.6}),
    ("Reacher-v5", {"frame_skip": 5}),
    ("Reacher-v5", {"reward_dist_weight": 0.7}),
    ("Reacher-v5", {"reward_control_weight": 0.1}),
    ("Pusher-v5", {"frame_skip": 2}),
    ("Pusher-v5", {"reward_near_weight": 0.3}),
    ("Pusher-v5", {"reward_dist_weight": 1.7}),
    ("Pusher-v5", {"reward_control_weight": 0.37}),
    ("Pusher-v5", {"xml_file": "pusher.xml"}),
    ("Swimmer-v5", {"frame_skip": 7}),
    ("Swimmer-v5", {"forward_reward_weight": 1.3}),
    ("Swimmer-v5", {"ctrl_cost_weight": 0.7}),
    ("Swimmer-v5", {"reset_noise_scale": 0.5}),
    ("Swimmer-v5", {"exclude_current_positions_from_observation": False}),
]

EDITED_MODELS = {
    "InvertedPendulum-v5": ("inverted_pendulum.xml", 'gravity="0 0 -9.81"', 'gravity="0 0 -5"'),
    "InvertedDoublePendulum-v5": ("inverted_double_pendulum.xml", 'gear="500"', 'gear="350"'),
    "Reacher-v5": ("reacher.xml", 'gear="200.0"', 'gear="90"'),
    "Pusher-v5": ("pusher_v5.xml", 'timestep="0.01"', 'timestep="0.005"'),
    "Swimmer-v5": ("swimmer.xml", 'viscosity="0.1"', 'viscosity="0.4"'),
}

LACKING = [
    ("InvertedPendulum-v5", "half_cheetah.xml", "must have 2 positions and 2 velocities, not 9 and 9"),
    ("InvertedDoublePendulum-v5", "inverted_pendulum.xml", "must have 3 positions and 3 velocities, not 2 and 2"),
    ("Reacher-v5", "inverted_pendulum.xml", "has no 'fingertip'"),
    ("Pusher-v5", "reacher.xml", "has no 'tips_arm'"),
]


@pytest.mark.parametrize("actions", [random_actions, policy_actions])
@pytest.mark.parametrize("env_id", ENVS)
def test_it_gives_what_gymnasium_gives_over_whole_episodes(env_id: str, actions) -> None:
    assert compare(env_id, 5_000, actions, tolerance=float64_tolerance(env_id)) > 0


@pytest.mark.parametrize("actions", [random_actions, policy_actions])
@pytest.mark.parametrize("env_id", ENVS)
def test_it_begins_many_short_episodes_as_gymnasium_does(env_id: str, actions) -> None:
    assert compare(env_id, 5_000, actions, tolerance=float64_tolerance(env_id), max_episode_steps=60) >= 80


@pytest.mark.parametrize(("env_id", "options"), OPTIONS)
def test_each_option_does_what_gymnasiums_does(env_id: str, options: dict[str, object]) -> None:
    assert compare(env_id, 600, tolerance=float64_tolerance(env_id), max_episode_steps=50, **options) >= 12


@pytest.mark.parametrize("env_id", ENVS)
def test_a_model_of_ones_own_is_simulated(env_id: str, tmp_path: Path) -> None:
    name, text, replacement = EDITED_MODELS[env_id]
    original = (ASSETS / name).read_text()
    assert text in original
    (tmp_path / "model.xml").write_text(original.replace(text, replacement))
    options = {"xml_file": str(tmp_path / "model.xml"), "max_episode_steps": 50}
    assert compare(env_id, 600, tolerance=float64_tolerance(env_id), **options) >= 12


def test_a_model_of_the_current_folder_is_found(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "reacher.xml").write_text((ASSETS / "reacher.xml").read_text().replace('gear="200.0"', 'gear="90"'))
    monkeypatch.chdir(tmp_path)
    compare("Reacher-v5", 40, tolerance=float64_tolerance("Reacher-v5"), xml_file="./reacher.xml")


@pytest.mark.parametrize("env_id", ENVS)
def test_a_saved_state_goes_on_to_the_last_bit(env_id: str) -> None:
    ours = native.make(env_id, 3, max_episode_steps=70)
    obs, choose, random = ours.reset(seed=4)[0], policy_actions(ours), np.random.default_rng(1)
    for _ in range(33):
        obs = ours.step(choose(obs, random))[0]
    state = ours.save_state()
    expected = trajectory(ours, obs, choose)
    assert np.isfinite(expected).all()
    ours.load_state(state)
    assert np.array_equal(trajectory(ours, obs, choose), expected)
    fresh = native.make(env_id, 3, max_episode_steps=70)
    fresh.reset(seed=90)
    fresh.load_state(state)
    assert np.array_equal(fresh.save_state(), state)
    assert np.array_equal(trajectory(fresh, obs, choose), expected)


def trajectory(env: native.NativeVectorEnv, obs: np.ndarray, choose: Actions) -> np.ndarray:
    """Observations, rewards and ends of the next 100 steps, which include resets."""
    rows, random = [], np.random.default_rng(2)
    for _ in range(100):
        obs, reward, terminated, truncated, _ = env.step(choose(obs, random))
        rows.append(np.column_stack([obs, reward, terminated, truncated]))
    return np.stack(rows)


@pytest.mark.parametrize("scale", [-0.1, float("nan"), float("inf")])
@pytest.mark.parametrize("env_id", ["InvertedPendulum-v5", "InvertedDoublePendulum-v5", "Swimmer-v5"])
def test_noise_that_numpy_cannot_draw_is_refused(env_id: str, scale: float) -> None:
    with pytest.raises((ValueError, OverflowError)):
        gym.make(env_id, reset_noise_scale=scale).reset(seed=0)
    with pytest.raises(NativeError, match="reset_noise_scale"):
        native.make(env_id, reset_noise_scale=scale)


@pytest.mark.parametrize(("env_id", "xml_file", "cause"), LACKING)
def test_a_model_that_lacks_what_the_task_reads_is_refused(env_id: str, xml_file: str, cause: str) -> None:
    with pytest.raises(NativeError, match=cause):
        native.make(env_id, xml_file=xml_file)


def test_a_double_pendulum_without_a_tip_is_refused(tmp_path: Path) -> None:
    original = (ASSETS / "inverted_double_pendulum.xml").read_text()
    site = '<site name="tip" pos="0 0 .6" size="0.01 0.01"/>'
    assert site in original
    (tmp_path / "model.xml").write_text(original.replace(site, ""))
    with pytest.raises(NativeError, match="has no site"):
        native.make("InvertedDoublePendulum-v5", xml_file=str(tmp_path / "model.xml"))


@pytest.mark.parametrize("env_id", ENVS)
def test_an_option_gymnasium_does_not_have_is_refused(env_id: str) -> None:
    with pytest.raises(NativeError, match="contact_cost_weight"):
        native.make(env_id, contact_cost_weight=0.1)
