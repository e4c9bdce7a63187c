"""MuJoCo without a display: a backend that works is found, or the packages that are missing are named."""

import os
import sys
from pathlib import Path

import av
import numpy as np

from surefoot.watching.mujoco_backend import BACKENDS, PACKAGES, renderer_of
from tests.cli.processes import Process
from tests.watching.displays import find_or_skip

SMALL = {"num_envs": 2, "num_steps": 8, "batch_size": 16, "hidden": 8}


def record_cheetah(path: str, **variables: str) -> None:
    """In a process of its own: OpenGL is bound to one backend, and the variables are read when it starts."""
    from surefoot.api import PPO
    from surefoot.core.errors import VideoError

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
