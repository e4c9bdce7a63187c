"""An env that is filmed: pictures are taken inside `step` and `reset`, before an ended episode is gone."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.errors import SurefootError, VideoError
from surefoot.machine.extras import install_hint
from surefoot.machine.opengl import with_opengl_advice
from surefoot.output.failures import brief, let_interrupts_through

MOST_PIXELS = 7680 * 4320
"""Of a picture: 8K. Larger ones take gigabytes to encode."""
Picture = NDArray[np.uint8]
"""[height, width, 3]"""


class FilmedEnv:
    """A Gymnasium or PettingZoo env with a camera; everything else is the env's own.

    It takes a picture every `stride` steps, and one of the last step of each episode: adapters reset an env in the step
    that ends its episode, so that step is over only when `reset` is called.
    """

    def __init__(self, env: Any, name: str, stride: int, takes_pictures: bool = True) -> None:
        self._env, self._name, self._stride, self._takes_pictures = env, name, stride, takes_pictures
        self._steps = 0
        self._picture: Picture | None = None
        self.episodes = 0
        """Number of resets so far."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._env, name)

    def reset(self, **options: Any) -> Any:
        """Take the last picture of the episode if it is missing, then begin another."""
        if self._steps and self._picture is None:
            self._picture = self.look()
        self._steps, self.episodes = 0, self.episodes + 1
        if self._takes_pictures or self.episodes > 1:
            return self._env.reset(**options)
        try:  # the first reset opens the window
            return self._env.reset(**options)
        except BaseException as error:
            let_interrupts_through(error)
            raise VideoError(
                f"the window of environment '{self._name}' could not be opened: {brief(error)}; write a video with"
                " --video FILE.mp4 (in Python: agent.record(FILE))"
            ) from error

    def step(self, action: Any) -> Any:
        """Step, and take a picture if it is due."""
        result = self._env.step(action)
        self._steps += 1
        if self._steps % self._stride == 0:
            self._picture = self.look()
        return result

    def look(self) -> Picture | None:
        """A picture of the env as it is now; None in a window, which shows itself."""
        if not self._takes_pictures:
            return None
        try:
            return as_picture(self._env.render(), self._name)
        except SurefootError:
            raise
        except BaseException as error:
            let_interrupts_through(error)
            raise not_drawn(self._name, error) from error

    def picture(self) -> Picture | None:
        """The picture of the last step, once; None if none was due."""
        taken, self._picture = self._picture, None
        return taken


def not_drawn(name: str, error: BaseException) -> VideoError:
    """The error of an env that raised while it was drawn; a missing package is named with its extra."""
    cause = with_opengl_advice(brief(error))
    remedy = f"; {install_hint('video')}" if "pygame" in cause and "install" in cause else ""
    return VideoError(f"environment '{name}' could not be drawn: {cause}{remedy}")


def as_picture(drawn: Any, name: str) -> Picture:
    """What an env drew, as RGB; gray and RGBA are converted."""
    array = np.asarray(drawn) if isinstance(drawn, np.ndarray | list | tuple) else None
    if array is not None and array.ndim == 3 and array.shape[2] == 1:
        array = array[:, :, 0]
    is_gray = array is not None and array.ndim == 2
    if array is None or array.dtype != np.uint8 or not (is_gray or (array.ndim == 3 and array.shape[2] in (3, 4))):
        got = type(drawn).__name__ if array is None else f"an array {array.shape} of {array.dtype}"
        raise VideoError(
            f"environment '{name}': render() must return an array [height, width, 3] of uint8 with"
            f" render_mode='rgb_array', got {got}"
        )
    height, width = array.shape[:2]
    if not 1 <= height * width <= MOST_PIXELS:
        raise VideoError(
            f"environment '{name}': render() returned an image of {width} x {height} pixels; a video needs 1 to"
            f" {MOST_PIXELS:,} (make the env with another width and height: env.kwargs)"
        )
    return np.repeat(array[:, :, None], 3, axis=2) if is_gray else array[:, :, :3]
