"""Draws return and step into a picture; small pictures are enlarged first, so that the text is readable."""

import math

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from surefoot.watching.camera import Picture

LEAST_SIDE = 256
"""A picture with a shorter side is enlarged by a whole factor, with hard edges: its pixels are worth seeing."""
LEAST_TEXT, TEXT_SHARE = 13, 26
"""Size of the text in pixels at least, and the share of the shorter side that it takes (1/26)."""
_INK, _SHADE, _OPACITY = "#ffffff", "#10161e", 0.75


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
