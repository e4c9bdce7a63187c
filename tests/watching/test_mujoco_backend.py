"""MuJoCo without a display: a backend that works is found, or the packages that are missing are named."""

import os
import sys
from pathlib import Path
from typing import Any

import av
import mujoco
import numpy as np
import pytest

from surefoot.api import PPO
from surefoot.envs.adapters.envpool import EnvPoolVector
from surefoot.errors import EnvError
from surefoot.machine.opengl import PACKAGES
from surefoot.settings.config import EnvConfig
from surefoot.watching import stage
from surefoot.watching.mujoco_backend import BACKENDS, CURRENT, renderer_of
from tests.cli.processes import Process, surefoot_with
from tests.watching.displays import find_or_skip
from tests.watching.drawn_envs import Lamp

SMALL = {"num_envs": 2, "num_steps": 8, "batch_size": 16, "hidden": 8}


def record_cheetah(path: str, **variables: str) -> None:
    """In a process of its own: OpenGL is bound to one backend, and the variables are read when it starts."""
    from surefoot.api import PPO
    from surefoot.errors import VideoError

    for name in ("DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL"):
        os.environ.pop(name, None)
    os.environ.update(variables)
    agent = PPO("HalfCheetah-v5", seed=1, max_episode_steps=4, **SMALL)
    try:
        recording = agent.record(path, 2, seed=5)
    except VideoError as error:
        print(error)
        sys.exit(2)
    assert recording.returns == agent.evaluate(2, seed=5).rewards, "through the twin of the native env"
    print(os.environ["MUJOCO_GL"])


def test_a_backend_is_found_and_the_twin_plays_what_the_native_env_plays(tmp_path: Path) -> None:
    working = next((backend for backend in BACKENDS if renderer_of(backend) is not None), None)
    expected = find_or_skip(working, "neither EGL nor OSMesa works on this machine")
    path = tmp_path / "cheetah.mp4"
    finished = Process(record_cheetah, str(path)).wait().succeeded()
    assert finished.out.split() == [expected]
    with av.open(str(path)) as file:
        frames = [np.asarray(frame.to_image()) for frame in file.decode(video=0)]
    assert [frame.shape for frame in frames] == [(480, 480, 3)] * 10
    assert frames[0].std() > 30, "not an empty picture"


def film_far_away(*camera_id: int) -> None:
    """How much of the picture is the cheetah, which is colored, after it has run 20 m."""
    import gymnasium as gym

    from surefoot.watching.mujoco_backend import prepare_mujoco

    os.environ.pop("DISPLAY", None)
    env = gym.make("HalfCheetah-v5", render_mode="rgb_array", **({"camera_id": camera_id[0]} if camera_id else {}))
    prepare_mujoco(env, "HalfCheetah-v5")
    env.reset(seed=0)
    env.render()
    own = env.unwrapped
    own.set_state(own.init_qpos + 20.0 * (np.arange(own.model.nq) == 0), own.init_qvel)
    picture = env.render().astype(int)
    print((picture[..., 0] - picture[..., 2] > 40).mean())


def test_the_camera_follows_the_body_unless_another_one_is_chosen() -> None:
    working = any(renderer_of(backend) is not None for backend in BACKENDS)
    find_or_skip(working or None, "neither EGL nor OSMesa works on this machine")
    followed, left_behind = Process(film_far_away), Process(film_far_away, -1)
    assert float(followed.wait().succeeded().out) > 0.01
    assert float(left_behind.wait().succeeded().out) == 0.0


def refuse_cheetah(path: str) -> None:
    """As on a machine without drivers: they are looked for in a folder that is not there, and OSMesa is not tried."""
    from surefoot.watching import mujoco_backend

    mujoco_backend.BACKENDS = ("egl",)
    record_cheetah(path, __EGL_VENDOR_LIBRARY_DIRS="/nonexistent", __EGL_VENDOR_LIBRARY_FILENAMES="")


def test_without_drivers_the_packages_are_named(tmp_path: Path) -> None:
    finished = Process(refuse_cheetah, str(tmp_path / "cheetah.mp4")).wait()
    assert finished.code == 2, finished.err
    assert f"apt-get install {PACKAGES}" in finished.out
    assert "MUJOCO_GL" in finished.out
    assert list(tmp_path.iterdir()) == []


def record_pool(path: str, **variables: str) -> None:
    """A robot of EnvPool, which ends a process that draws without an OpenGL context."""
    from surefoot.api import PPO
    from surefoot.errors import VideoError

    for name in ("DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL"):
        os.environ.pop(name, None)
    os.environ.update(variables)
    agent = PPO("envpool:Hopper-v4", preset="none", max_episode_steps=2, **SMALL)
    try:
        recording = agent.record(path, 2, seed=5)
    except VideoError as error:
        print(error)
        sys.exit(2)
    assert recording.returns == agent.evaluate(2, seed=5).rewards
    print(recording.fps)


def test_robots_of_envpool_are_recorded(tmp_path: Path) -> None:
    working = any(renderer_of(backend) is not None for backend in BACKENDS)
    find_or_skip(working or None, "neither EGL nor OSMesa works on this machine")
    path = tmp_path / "hopper.mp4"
    assert Process(record_pool, str(path)).wait().succeeded().out.split() == ["30.0"]
    with av.open(str(path)) as file:
        frames = [np.asarray(frame.to_image()) for frame in file.decode(video=0)]
    assert [frame.shape for frame in frames] == [(480, 480, 3)] * 6
    assert frames[0].std() > 30, "not an empty picture"


def record_pool_with(path: str, choice: str) -> None:
    """As on a machine where the chosen backend does not work."""
    record_pool(path, MUJOCO_GL=choice, __EGL_VENDOR_LIBRARY_DIRS="/nonexistent", __EGL_VENDOR_LIBRARY_FILENAMES="")


@pytest.mark.parametrize("choice", ["egl", "glfw", "osmesa", "bogus"])
def test_envpool_never_ends_the_process_where_it_cannot_draw(choice: str, tmp_path: Path) -> None:
    finished = Process(record_pool_with, str(tmp_path / "hopper.mp4"), choice).wait()
    assert finished.code == 2, finished.err
    assert f"MUJOCO_GL={choice} does not work here; set the variable MUJOCO_GL" in finished.out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("choice", ["osmesa", "bogus"])
def test_only_what_draws_needs_opengl(choice: str, tmp_path: Path) -> None:
    """MuJoCo reads the variable when it is imported, and fails there if it names what does not work."""
    if choice in BACKENDS and renderer_of(choice) is not None:
        pytest.skip(f"MUJOCO_GL={choice} works on this machine")
    variables = {"MUJOCO_GL": choice}
    small = ["--rollout.num_envs", "2", "--rollout.num_steps", "16", "--ppo.batch_size", "16", "--steps", "32"]
    run = tmp_path / "run"
    trained = surefoot_with(variables, "train", "Hopper-v5", "--run-dir", run, *small)
    assert trained.code == 0, trained.err
    filmed = surefoot_with(variables, "watch", run, "--video", tmp_path / "a.gif", "--max-steps", 2)
    assert filmed.code == 2, filmed.err
    said = " ".join(filmed.err.split())
    assert said.startswith("error: ")
    assert f"MUJOCO_GL={choice} does not work here; set the variable MUJOCO_GL" in said


def test_envpool_draws_in_another_process_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else EnvPool cannot draw ends that process, and not ours."""
    find_or_skip(renderer_of("egl"), "EGL does not work on this machine")
    script = stage._TRIAL.replace(CURRENT, "import sys")
    monkeypatch.setattr(stage, "_TRIAL", script)
    problem = stage._problem("Hopper-v4", "{}", "egl")
    assert "ends the process that draws it (ERROR: " in str(problem)
    assert "set the variable MUJOCO_GL" in str(problem)


def test_robots_of_playground_say_how_fast_they_are() -> None:
    pool = EnvPoolVector("Go1JoystickFlatTerrain-v1", EnvConfig(id="envpool:Go1JoystickFlatTerrain-v1"), 1)
    assert pool.steps_per_second == 50


def test_pixels_of_envpool_are_refused_which_end_the_process() -> None:
    with pytest.raises(EnvError, match="from_pixels makes EnvPool draw in threads that have no OpenGL context"):
        PPO("envpool:Hopper-v4", preset="none", **SMALL, **{"env.kwargs": {"from_pixels": True}})


class Camera(Lamp):
    """Observes what MuJoCo draws, as the env of somebody who forgot the variable."""

    def __init__(self, call: str) -> None:
        super().__init__()
        self._call = call
        if call == "__init__":
            self._draw()

    def reset(self, **options: Any) -> Any:
        if self._call == "reset":
            self._draw()
        return super().reset(**options)

    def _draw(self) -> None:
        mujoco.MjrContext(mujoco.MjModel.from_xml_string("<mujoco/>"), 150)


def observe_pictures(call: str) -> None:
    try:
        PPO(lambda: Camera(call), **SMALL).learn(16)
    except EnvError as error:
        print(error)


@pytest.mark.parametrize("call", ["__init__", "reset"])
def test_errors_of_opengl_name_the_variable(call: str) -> None:
    said = Process(observe_pictures, call).wait().succeeded().out
    advice = f"set the variable MUJOCO_GL before Python starts: egl (packages {PACKAGES}) or osmesa"
    assert "an OpenGL platform library has not been loaded" in said
    assert advice in said
