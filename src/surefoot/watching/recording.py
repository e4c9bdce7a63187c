"""Shows episodes in a window, or records them in a file, with return and step drawn into the picture."""

import logging
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from surefoot.policies.policy import Policy
from surefoot.watching.camera import Picture
from surefoot.watching.playing import Moment, Program, play
from surefoot.watching.stage import Stage
from surefoot.watching.video_file import Preview, write_video

_log = logging.getLogger("surefoot")

Tell = Callable[[Moment], None]
"""Is told each moment, for a progress bar."""
LEAST_SIDE = 256
"""A picture with a shorter side is enlarged by a whole factor, with hard edges: its pixels are worth seeing."""
LEAST_TEXT, TEXT_SHARE = 13, 26
"""Size of the text in pixels at least, and the share of the shorter side that it takes (1/26)."""
_INK, _SHADE, _OPACITY = "#ffffff", "#10161e", 0.75


@dataclass(frozen=True)
class Shown:
    """Episodes that were shown: their total rewards (for several agents the mean) and lengths."""

    returns: tuple[float, ...]
    lengths: tuple[int, ...]


@dataclass(frozen=True)
class Recording(Shown):
    """Episodes in a video file."""

    path: Path
    fps: float
    """Frames per second; the video runs in the env's own time."""
    num_frames: int


def show(policy: Policy, stage: Stage, program: Program, rows: int, tell: Tell | None = None) -> Shown:
    """Play the episodes in the window of the stage."""
    log = _Log(tell)
    for moment in play(policy, stage, program, rows):
        log.add(moment)
    return Shown(*log.results())


def record(
    policy: Policy,
    stage: Stage,
    program: Program,
    rows: int,
    path: Path,
    tell: Tell | None = None,
    preview: Preview | None = None,
) -> Recording:
    """Play the episodes and write them into a video file; `preview` gets a small copy."""
    log = _Log(tell)

    def frames() -> Iterator[Image.Image]:
        for moment in play(policy, stage, program, rows):
            log.add(moment)
            if moment.picture is not None:
                yield drawn(moment.picture, caption(moment, program.episodes))

    write_video(path, frames() if preview is None else preview.watching(frames()), stage.fps)
    return Recording(*log.results(), path, stage.fps, log.num_frames)


def caption(moment: Moment, episodes: int) -> list[str]:
    """The text of a frame."""
    which = [f"episode {moment.episode + 1}/{episodes}"] if episodes > 1 else []
    return [*which, f"return {shown_return(moment.total_reward)}", f"step {moment.step:,}"]


class _Log:
    """Collects the results of the episodes."""

    def __init__(self, tell: Tell | None) -> None:
        self._tell = tell
        self._ends: list[Moment] = []
        self.num_frames = 0

    def add(self, moment: Moment) -> None:
        """Note a moment."""
        self.num_frames += moment.picture is not None
        if moment.is_last:
            self._ends.append(moment)
        if moment.is_cut:
            _log.info("episode %d was cut off after %d steps", moment.episode + 1, moment.step)
        if self._tell is not None:
            self._tell(moment)

    def results(self) -> tuple[tuple[float, ...], tuple[int, ...]]:
        """Total rewards and lengths."""
        return tuple(end.total_reward for end in self._ends), tuple(end.step for end in self._ends)


def drawn(picture: Picture, lines: list[str]) -> Image.Image:
    """The picture with lines of text at its top left, with even sides, as video codecs need them."""
    image = _enlarged(Image.fromarray(np.ascontiguousarray(picture)))
    text, font = "\n".join(lines), ImageFont.load_default(max(LEAST_TEXT, min(image.size) // TEXT_SHARE))
    assert isinstance(font, ImageFont.FreeTypeFont)
    _, _, right, bottom = ImageDraw.Draw(image).multiline_textbbox((0, 0), text, font=font)
    pad = max(3, round(font.size / 2.5))
    width, height = math.ceil(right) + 2 * pad, math.ceil(bottom) + 2 * pad
    image = _with_room(image, width, height)
    box = Image.new("RGB", (width, height), _SHADE)
    image.paste(Image.blend(image.crop((0, 0, width, height)), box, _OPACITY), (0, 0))
    ImageDraw.Draw(image).multiline_text((pad, pad), text, font=font, fill=_INK)
    return image


def shown_return(value: float) -> str:
    """A return with as many digits as can be read while it changes."""
    digits = 1 if abs(value) >= 100 else 2 if abs(value) >= 1 or value == 0 else 4
    return f"{value:.{digits}f}"


def _enlarged(image: Image.Image) -> Image.Image:
    factor = -(-LEAST_SIDE // max(1, min(image.size)))
    # A strip such as 1000 x 20 would become huge.
    factor = max(1, min(factor, 4 * LEAST_SIDE // max(image.size)))
    return image.resize((image.width * factor, image.height * factor), Image.Resampling.NEAREST)


def _with_room(image: Image.Image, width: int, height: int) -> Image.Image:
    """The picture with even sides, on a larger ground where the text would not fit."""
    width, height = max(width, image.width), max(height, image.height)
    room = Image.new("RGB", (width + width % 2, height + height % 2), _SHADE)
    room.paste(image)
    return room
