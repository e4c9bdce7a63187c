"""What an agent is shown on, checked before anything else: a display, or a file. Imports nothing heavy."""

import importlib.util
import os
import sys
from pathlib import Path

from surefoot.errors import VideoError
from surefoot.machine.extras import install_hint

ENDINGS = (".mp4", ".gif")
"""Of video files; each selects its format."""


def has_display() -> bool:
    """Whether a window can be opened."""
    return sys.platform != "linux" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def check_display() -> None:
    """Refuse a window where there is no display to open it on."""
    if not has_display():
        raise VideoError(
            "there is no display to open a window on (DISPLAY is not set); write a video with --video FILE.mp4 (in"
            " Python: agent.record(FILE))"
        )


def check_video_file(path: Path) -> None:
    """Refuse what cannot be written, before anything is played."""
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise VideoError(f"cannot write {path}: the ending must be .mp4 or .gif, which selects the format")
    if os.path.exists(path) and not os.path.isfile(path):
        raise VideoError(f"cannot write {path}: it is not a file; pass one, such as agent{ending}")
    if problem := missing_package(ending.removeprefix(".")):
        raise VideoError(f"{problem}, or write a .gif")


def missing_package(video_format: str) -> str | None:
    """What is missing to write a format, and how to install it; None if nothing is."""
    if video_format != "mp4" or importlib.util.find_spec("av") is not None:
        return None
    return f"the package av is not installed, which writes mp4; {install_hint('video')}"
