"""OpenGL, with which MuJoCo draws: the variable that selects how, and the packages that it takes."""

import re

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
