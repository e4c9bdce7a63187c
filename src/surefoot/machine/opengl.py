"""OpenGL, with which MuJoCo draws: the variable that selects how, and the packages that it takes."""

import os
import re
import sys
from importlib import import_module

VARIABLE = "MUJOCO_GL"
PACKAGES = "libegl1 libgl1 libgl1-mesa-dri"
"""Debian's and Ubuntu's packages for rendering without a display."""
ADVICE = (
    f"set the variable {VARIABLE} before Python starts: egl (packages {PACKAGES}) or osmesa (package libosmesa6)"
    " without a display, glfw with one"
)
_SIGNS = re.compile(r"opengl|glgeterror|eglquery|egl_|\begl\b|osmesa|glfw|mujoco_gl|mjr_|gladload", re.IGNORECASE)


def with_opengl_advice(cause: str) -> str:
    """A cause with the variable to set, if it is OpenGL that failed."""
    return f"{cause}; {ADVICE}" if _SIGNS.search(cause) else cause


def import_mujoco() -> None:
    """Import MuJoCo even where MUJOCO_GL names what does not work here: only drawing needs OpenGL."""
    if "mujoco" in sys.modules:
        return
    before = {name: os.environ.get(name) for name in (VARIABLE, "PYOPENGL_PLATFORM")}
    try:
        import_module("mujoco")
    except Exception:
        if not before[VARIABLE]:
            raise
        try:
            os.environ[VARIABLE] = "disable"
            import_module("mujoco")
        finally:
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value
