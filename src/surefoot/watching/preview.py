"""A small moving picture of a recording, for places that show no video files, such as TensorBoard."""

from collections.abc import Iterator
from io import BytesIO

from PIL import Image

from surefoot.watching.video_file import Frames, save_gif

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
