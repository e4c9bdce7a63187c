"""MuJoCo without a display: which OpenGL backend works on this machine.

PyOpenGL binds to one platform per process, and a broken driver may end the process, so a backend is tried in another
process. On a machine without a GPU, Mesa renders in software.
"""

import os
import subprocess
import sys
from functools import cache
from importlib import import_module
from typing import Any

from surefoot.errors import VideoError
from surefoot.machine.opengl import ADVICE, PACKAGES, VARIABLE
from surefoot.output.failures import brief

BACKENDS = ("egl", "osmesa")
"""Rendering backends that need no display, in the order in which they are tried."""
SIDE = 480
"""Width and height of a picture in pixels, as those of Gymnasium's MuJoCo tasks."""
TRACK = "track"
"""The usual name of the camera that follows the body in robot models."""
_ON_DISPLAY = "glfw"
_SOFTWARE = ("llvmpipe", "softpipe", "swrast", "software")
_PATIENCE_S = 60
CURRENT = """
import sys
from importlib import import_module
context = import_module(f"mujoco.{sys.argv[1]}").GLContext(8, 8)
context.make_current()
"""
_TRIAL = f"""{CURRENT}
import mujoco
mujoco.MjrContext(mujoco.MjModel.from_xml_string("<mujoco/>"), 150)
from OpenGL.GL import GL_RENDERER, glGetString
print((glGetString(GL_RENDERER) or b"").decode())
"""


def prepare_mujoco(env: Any, name: str) -> None:
    """Choose the backend of a MuJoCo env before its first picture; other envs are left alone.

    The user's choice (MUJOCO_GL) and that of a display come first.
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
    else:
        working_backend(name)
    without_slow_shadows(model, os.environ[VARIABLE])


def without_slow_shadows(model: Any, backend: str) -> None:
    """Switch shadows off where the CPU draws them: they take two thirds of the time."""
    renderer = renderer_of(backend) if backend in BACKENDS else None
    if renderer is not None and any(word in renderer.lower() for word in _SOFTWARE):
        model.vis.quality.shadowsize = 0


def _follow(env: Any, model: Any) -> None:
    """Use the camera of the model that follows the body, unless the user chose one: Gymnasium's own stays behind."""
    import mujoco

    renderer, spec = getattr(env.unwrapped, "mujoco_renderer", None), getattr(env, "spec", None)
    chosen = {"camera_id", "camera_name"} & set(getattr(spec, "kwargs", None) or {})
    track = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_CAMERA, TRACK)
    if renderer is not None and not chosen and track != -1:
        renderer.camera_id = track


def working_backend(name: str) -> str:
    """The backend that the user chose, or the first one that works here."""
    chosen = os.environ.get(VARIABLE, "").lower().strip()
    if chosen:
        backend = chosen if chosen in BACKENDS else _ON_DISPLAY
        if chosen not in (*BACKENDS, _ON_DISPLAY) or renderer_of(backend) is None:
            raise VideoError(
                f"environment '{name}' cannot be rendered: {VARIABLE}={chosen} does not work here; {ADVICE}"
            )
        return backend
    for backend in (*BACKENDS, *([_ON_DISPLAY] if os.environ.get("DISPLAY") else [])):
        if renderer_of(backend) is not None:
            return backend
    raise VideoError(
        f"environment '{name}' cannot be rendered: MuJoCo found neither EGL nor OSMesa, and there is no display; run"
        f" 'apt-get install {PACKAGES}', or {ADVICE}"
    )


class GLContext:
    """An OpenGL context of our own for whoever draws with MuJoCo and brings none: MuJoCo ends a process without one."""

    def __init__(self, name: str, side: int) -> None:
        self.backend = working_backend(name) if sys.platform == "linux" else "gl_context"
        try:
            self._context = import_module(f"mujoco.{self.backend}").GLContext(side, side)
        except Exception as error:  # this process may be bound to another backend already
            raise VideoError(f"environment '{name}' cannot be rendered: {brief(error)}; {ADVICE}") from error

    def make_current(self) -> None:
        """Draw with this context from here on; others in this thread may have used their own."""
        self._context.make_current()

    def free(self) -> None:
        """Release it."""
        self._context.free()


@cache
def renderer_of(backend: str) -> str | None:
    """The name of the renderer behind a backend, or None if it does not work."""
    done = trial(backend, _TRIAL)
    return done.stdout.strip() if done is not None and done.returncode == 0 else None


def trial(backend: str, script: str, *arguments: str) -> subprocess.CompletedProcess[str] | None:
    """Run a script that draws with a backend in another process; None if it did not end."""
    own = {VARIABLE: backend, "PYOPENGL_PLATFORM": backend} if backend in BACKENDS else {}
    command = [sys.executable, "-c", script, backend, *arguments]
    try:
        return subprocess.run(
            command, env=os.environ | own, capture_output=True, text=True, timeout=_PATIENCE_S, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
