"""The native walking tasks of MuJoCo against Gymnasium's own: the same numbers to the last bit, whatever the options.

No tolerance is needed: rewards are sums of squares in numpy's order, and no norm or dot product (whose order a BLAS
would choose) enters a reward or an observation; Gymnasium only reports them in its infos.
"""

import inspect
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from numpy.typing import NDArray

from surefoot.envs import native
from surefoot.errors import NativeError
from tests.parity.stepping import compare, policy_actions, random_actions

INF = float("inf")
WALKERS = ["HalfCheetah-v5", "Hopper-v5", "Walker2d-v5", "Ant-v5", "Humanoid-v5", "HumanoidStandup-v5"]
PICTURES = {"self", "kwargs", "default_camera_config"}
LEFT_OUT = ["include_cinert", "include_cvel", "include_qfrc_actuator", "include_cfrc_ext"]

SHARED: list[dict[str, Any]] = [
    {"frame_skip": 3},
    {"ctrl_cost_weight": 0.37},
    {"reset_noise_scale": 0.07},
    {"exclude_current_positions_from_observation": False},
]
UPRIGHT: list[dict[str, Any]] = [
    {"forward_reward_weight": 1.7},
    {"healthy_reward": 0.3},
]
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "HalfCheetah-v5": [*SHARED, {"forward_reward_weight": 1.7}],
    "Hopper-v5": [
        *SHARED,
        *UPRIGHT,
        {"terminate_when_unhealthy": False},
        {"healthy_state_range": (-1.5, 1.0)},
        {"healthy_z_range": (1.1, 1.25)},
        {"healthy_angle_range": (-0.02, 0.05)},
    ],
    "Walker2d-v5": [
        *SHARED,
        *UPRIGHT,
        {"terminate_when_unhealthy": False},
        {"xml_file": "walker2d.xml"},
        {"healthy_z_range": (1.1, 1.26)},
        {"healthy_angle_range": (-0.1, 0.2)},
    ],
    "Ant-v5": [
        *SHARED,
        *UPRIGHT,
        {"contact_cost_weight": 0.3},
        {"contact_cost_weight": 0},
        {"main_body": 13},
        {"main_body": "aux_1"},
        {"main_body": 0},
        {"healthy_z_range": [0.5, 0.8]},
        {"healthy_z_range": [0.5, 0.8], "terminate_when_unhealthy": False},
        {"contact_force_range": (-0.2, 0.3)},
        {"contact_force_range": (1.0, -1.0)},
        {"contact_force_range": (-INF, INF)},
        {"include_cfrc_ext_in_observation": False},
    ],
    "Humanoid-v5": [
        *SHARED,
        *UPRIGHT,
        {"terminate_when_unhealthy": False},
        {"contact_cost_weight": 1e-5},
        {"contact_cost_weight": 1e-3, "contact_cost_range": (1.0, 2.0)},
        {"contact_cost_range": (0.5, 10.0)},
        {"healthy_z_range": (1.3, 1.45)},
        *({f"{part}_in_observation": False} for part in LEFT_OUT),
        {f"{part}_in_observation": False for part in LEFT_OUT},
    ],
    "HumanoidStandup-v5": [
        *SHARED,
        {"impact_cost_weight": 1e-5},
        {"impact_cost_range": (0.5, 10.0)},
        {f"{part}_in_observation": False for part in LEFT_OUT},
    ],
}
LENGTHS = [2_010, pytest.param(10_000, marks=pytest.mark.nightly)]
"""Steps: enough to reach the time limit of 1,000 in two envs."""
CASES = [(env_id, options) for env_id, several in OPTIONS.items() for options in several]


def trace(env: native.NativeVectorEnv, steps: int, seed: int = 3) -> list[NDArray[Any]]:
    """All that an env gives for a fixed sequence of actions."""
    choose, random, seen = random_actions(env), np.random.default_rng(seed), []
    for _ in range(steps):
        obs, reward, terminated, truncated, info = env.step(choose(np.zeros((env.num_envs, 1)), random))
        seen += [obs, reward, terminated, truncated]
        if "final_obs" in info:
            seen.append(info["final_obs"][info["_final_obs"]])
    return seen


def begun(env_id: str, **options: Any) -> list[NDArray[Any]]:
    env = native.make(env_id, 2, **options)
    env.reset(seed=31)
    return trace(env, 60)


def same(one: list[NDArray[Any]], other: list[NDArray[Any]]) -> bool:
    if len(one) != len(other):
        return False
    return all(a.shape == b.shape and a.tobytes() == b.tobytes() for a, b in zip(one, other, strict=True))


def own_model(env_id: str, folder: Path) -> str:
    """A copy of a task's model with a shorter time step."""
    name = gym.make(env_id).unwrapped.fullpath
    text = Path(name).read_text()
    shorter = text.replace('timestep="0.0', 'timestep="0.00')
    assert shorter != text
    (folder / "own.xml").write_text(shorter)
    return str(folder / "own.xml")


@pytest.mark.parametrize("env_id", WALKERS)
@pytest.mark.parametrize("steps", LENGTHS)
def test_random_actions_give_what_gymnasium_gives(env_id: str, steps: int) -> None:
    assert compare(env_id, steps, random_actions, num_envs=2) > 0


@pytest.mark.parametrize("env_id", WALKERS)
@pytest.mark.parametrize("steps", LENGTHS)
def test_a_policy_over_many_resets_gets_what_gymnasium_gives(env_id: str, steps: int) -> None:
    assert compare(env_id, steps, policy_actions, max_episode_steps=70) >= steps // 80


@pytest.mark.parametrize(("env_id", "options"), CASES, ids=lambda value: str(value))
def test_an_option_does_what_it_does_in_gymnasium(env_id: str, options: dict[str, Any]) -> None:
    compare(env_id, 304, max_episode_steps=40, **options)
    assert not same(begun(env_id), begun(env_id, **options)), "the case does not show the option"


@pytest.mark.parametrize("env_id", WALKERS)
def test_a_model_of_ones_own(env_id: str, tmp_path: Path) -> None:
    compare(env_id, 320, max_episode_steps=40, xml_file=own_model(env_id, tmp_path))


def test_a_weight_that_gymnasium_ignores_is_taken() -> None:
    compare("HumanoidStandup-v5", 320, uph_cost_weight=3.0)


@pytest.mark.parametrize("env_id", WALKERS)
def test_every_option_of_gymnasium_is_tried(env_id: str) -> None:
    kind = type(gym.make(env_id).unwrapped)
    tried = {name for options in OPTIONS[env_id] for name in options} | {"xml_file", "uph_cost_weight"}
    assert set(inspect.signature(kind.__init__).parameters) - PICTURES <= tried


@pytest.mark.parametrize("env_id", WALKERS)
def test_a_saved_episode_goes_on_bit_for_bit(env_id: str) -> None:
    env, fresh, used = (native.make(env_id, 3, max_episode_steps=50) for _ in range(3))
    env.reset(seed=5)
    used.reset(seed=99)
    trace(env, 23)
    trace(used, 31, seed=8)
    state = env.save_state()
    expected = trace(env, 80)
    assert any(array.dtype == bool and array.any() for array in expected), "no episode ended"
    for other in (env, fresh, used):
        other.load_state(state)
        assert same(trace(other, 80), expected)


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("Ant-v5", {"main_body": "nobody"}, "nobody"),
    ("Ant-v5", {"main_body": ""}, "main_body"),
    ("Ant-v5", {"main_body": -1}, "main_body"),
    ("Ant-v5", {"main_body": 14}, "main_body"),
    ("Ant-v5", {"main_body": 1.5}, "main_body"),
    ("Ant-v5", {"healthy_z_range": (0.2,)}, "healthy_z_range"),
    ("Humanoid-v5", {"contact_cost_range": 1.0}, "contact_cost_range"),
    ("Humanoid-v5", {"reset_noise_scale": -0.1}, "reset_noise_scale"),
    ("Hopper-v5", {"reset_noise_scale": INF}, "reset_noise_scale"),
    ("Walker2d-v5", {"reset_noise_scale": float("nan")}, "reset_noise_scale"),
    ("HalfCheetah-v5", {"frame_skip": 0}, "frame_skip"),
    ("HalfCheetah-v5", {"xml_file": "nowhere.xml"}, "nowhere.xml"),
    ("HalfCheetah-v5", {"healthy_reward": 1.0}, "healthy_reward"),
]


@pytest.mark.parametrize(("env_id", "options", "named"), REFUSED)
def test_what_gymnasium_refuses_is_refused(env_id: str, options: dict[str, Any], named: str) -> None:
    with pytest.raises((ValueError, TypeError, LookupError, ArithmeticError, OSError)):
        step_once(env_id, options)
    with pytest.raises(NativeError, match=named):
        native.make(env_id, 1, **options)


def step_once(env_id: str, options: dict[str, Any]) -> None:
    env = gym.make(env_id, disable_env_checker=True, **options)
    env.reset(seed=0)
    env.step(np.zeros(env.action_space.shape, np.float32))


@pytest.mark.parametrize("env_id", WALKERS)
def test_a_model_that_lacks_joints_is_refused(env_id: str, tmp_path: Path) -> None:
    (tmp_path / "bare.xml").write_text("<mujoco><worldbody><body><geom size='1'/></body></worldbody></mujoco>")
    with pytest.raises(NativeError, match=r"at least \d positions"):
        native.make(env_id, 1, xml_file=str(tmp_path / "bare.xml"))


def test_a_humanoid_without_a_free_torso_is_refused(tmp_path: Path) -> None:
    slides = "".join(f"<joint type='slide' axis='{axis}'/>" for axis in ("1 0 0", "0 1 0", "0 0 1"))
    text = f"<mujoco><worldbody><body>{slides}<geom size='1'/></body></worldbody></mujoco>"
    (tmp_path / "slides.xml").write_text(text)
    with pytest.raises(NativeError, match="6 velocities, not 3 and 3"):
        native.make("Humanoid-v5", 1, xml_file=str(tmp_path / "slides.xml"))
    compare("Humanoid-v5", 20, xml_file=str(tmp_path / "slides.xml"), include_qfrc_actuator_in_observation=False)
