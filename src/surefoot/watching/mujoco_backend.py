"""MuJoCo without a display: which OpenGL backend works on this machine.

PyOpenGL binds to one platform per process, and a broken driver may end the process, so a backend is tried in another
process. On a machine without a GPU, Mesa renders in software.
"""

import os
import subprocess
import sys
from functools import cache
from typing import Any

from surefoot.core.errors import VideoError

VARIABLE = "MUJOCO_GL"
PACKAGES = "libegl1 libgl1 libgl1-mesa-dri"
"""Debian's and Ubuntu's packages for rendering without a display."""
BACKENDS = ("egl", "osmesa")
_SOFTWARE = ("llvmpipe", "softpipe", "swrast", "software")
_PATIENCE_S = 60
_TRIAL = """
import sys
from importlib import import_module
context = import_module(f"mujoco.{sys.argv[1]}").GLContext(8, 8)
context.make_current()
from OpenGL.GL import GL_RENDERER, glGetString
print(glGetString(GL_RENDERER).decode())
"""


def prepare_mujoco(env: Any, name: str) -> None:
    """Choose the backend of a MuJoCo env before its first picture; other envs are left alone.

    The user's choice (MUJOCO_GL) and that of a display come first. Shadows are switched off where the CPU draws them:
    they take two thirds of the time.
    """
    model = getattr(getattr(env, "unwrapped", env), "model", None)
    if not type(model).__module__.startswith("mujoco"):
        return
    _follow(env, model)
    if sys.platform != "linux":
        return
    if not os.environ.get(VARIABLE):
        if os.environ.get("DISPLAY"):
            return
        os.environ[VARIABLE] = working_backend(name)
    renderer = renderer_of(os.environ[VARIABLE])
    if renderer is not None and any(word in renderer.lower() for word in _SOFTWARE):
        model.vis.quality.shadowsize = 0  # type: ignore[union-attr]


def _follow(env: Any, model: Any) -> None:
    """Use the camera of the model that follows the body, unless the user chose one: Gymnasium's own stays behind."""
    import mujoco

    renderer, spec = getattr(env.unwrapped, "mujoco_renderer", None), getattr(env, "spec", None)
    chosen = {"camera_id", "camera_name"} & set(getattr(spec, "kwargs", None) or {})
    track = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_CAMERA, "track")
    if renderer is not None and not chosen and track != -1:
        renderer.camera_id = track


def working_backend(name: str) -> str:
    """The first backend that works here."""
    for backend in BACKENDS:
        if renderer_of(backend) is not None:
            return backend
    raise VideoError(
        f"environment '{name}' cannot be drawn: MuJoCo found neither EGL nor OSMesa, and there is no display; run"
        f" 'apt-get install {PACKAGES}', or choose a backend with the variable {VARIABLE}"
    )


@cache
def renderer_of(backend: str) -> str | None:
    """The name of the renderer behind a backend, or None if it does not work."""
    if backend not in BACKENDS:
        return None
    command = [sys.executable, "-c", _TRIAL, backend]
    own = {VARIABLE: backend, "PYOPENGL_PLATFORM": backend}
    try:
        done = subprocess.run(
            command, env=os.environ | own, capture_output=True, text=True, timeout=_PATIENCE_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
