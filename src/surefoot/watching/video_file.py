"""Video files: mp4 (H.264, with PyAV) and gif (with Pillow alone), complete or not there at all."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any

from PIL import Image

from surefoot.errors import VideoError
from surefoot.output.failures import brief
from surefoot.training.checkpoint import TEMPORARY_SUFFIX

MOST_GIF_FPS, MOST_GIF_SIDE = 15.0, 480
"""Frames per second and longer side of a gif, which grows with both much faster than an mp4."""
_QUALITY = "23"
"""H.264's constant rate factor: its default, hardly to be told from the original."""

Frames = Iterator[Image.Image]


def most_fps(path: Path, most: float) -> float:
    """The frames per second that suit a format."""
    return min(most, MOST_GIF_FPS) if path.suffix.lower() == ".gif" else most


def write_video(path: Path, frames: Frames, fps: float) -> None:
    """Write all frames; an earlier file is replaced only by a complete one."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}{TEMPORARY_SUFFIX}")
    first = next(frames)
    alike = (frame if frame.size == first.size else frame.resize(first.size) for frame in frames)  # envs may change it
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _WRITERS[path.suffix.lower()](unfinished, chain([first], alike), fps)
        unfinished.replace(path)
    except OSError as error:  # PyAV's errors are OSErrors too
        raise VideoError(f"cannot write {path}: {error.strerror or brief(error)}") from error
    finally:
        with suppress(OSError):
            unfinished.unlink()


def _write_mp4(path: Path, frames: Frames, fps: float) -> None:
    import av

    first = next(frames)
    try:
        _encode(av, path, chain([first], frames), fps)
    except av.error.FFmpegError as error:
        if isinstance(error, OSError) and error.errno in errno.errorcode and error.errno != errno.EINVAL:
            raise  # a full disk
        width, height = first.size
        raise VideoError(
            f"H.264 cannot encode frames of {width} x {height} pixels; write a .gif, or return frames"
            " of another size from render()"
        ) from error


def _encode(av: Any, path: Path, frames: Frames, fps: float) -> None:
    with av.open(os.fspath(path), "w", format="mp4", options={"movflags": "faststart"}) as file:
        stream = None
        for image in frames:
            if stream is None:
                stream = file.add_stream("libx264", rate=Fraction(fps).limit_denominator(1000))
                stream.width, stream.height = image.size
                # What every browser plays.
                stream.pix_fmt, stream.options = "yuv420p", {"crf": _QUALITY, "preset": "veryfast"}
            file.mux(stream.encode(av.VideoFrame.from_image(image)))
        if stream is not None:
            file.mux(stream.encode())


def _write_gif(path: Path, frames: Frames, fps: float) -> None:
    small = (_gif_frame(image) for image in frames)
    save_gif(path, small, fps)


def save_gif(target: object, frames: Frames, fps: float) -> None:
    """Write an endless gif to a path or a binary file."""
    first = next(frames)
    # Times of a gif are hundredths of a second.
    duration = max(2, round(100 / fps)) * 10
    first.save(target, format="GIF", save_all=True, append_images=frames, duration=duration, loop=0)  # type: ignore[arg-type]


def _gif_frame(image: Image.Image) -> Image.Image:
    image.thumbnail((MOST_GIF_SIDE, MOST_GIF_SIDE))
    return image.quantize(256, dither=Image.Dither.NONE)


_WRITERS: dict[str, Callable[[Path, Frames, float], None]] = {".mp4": _write_mp4, ".gif": _write_gif}


SIDE, MOST_FRAMES = 240, 80
"""Longer side in pixels, and number of frames: at most about 2 MB, mostly far less."""


class Preview:
    """Keeps some of the frames that pass, spread evenly over the recording."""

    def __init__(self) -> None:
        self._kept: list[Image.Image] = []
        self._seen, self._stride = 0, 1

    def watching(self, frames: Frames) -> Iterator[Image.Image]:
        """The same frames, while copies of some are kept."""
        for frame in frames:
            if self._seen % self._stride == 0:
                small = frame.copy()
                small.thumbnail((SIDE, SIDE))
                self._kept.append(small)
            self._seen += 1
            if len(self._kept) > MOST_FRAMES:
                self._kept, self._stride = self._kept[::2], self._stride * 2
            yield frame

    @property
    def size(self) -> tuple[int, int]:
        """Width and height."""
        return self._kept[0].size

    def gif(self, fps: float) -> bytes:
        """The frames in the time of the recording that had `fps` frames per second."""
        file = BytesIO()
        small = (frame.quantize(128, dither=Image.Dither.NONE) for frame in self._kept)
        save_gif(file, small, fps / self._stride)
        return file.getvalue()
