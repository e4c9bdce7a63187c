"""Draws return and step into a picture; small pictures are enlarged first, so that the text is readable."""

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from surefoot.watching.camera import Picture

LEAST_SIDE = 256
"""A picture with a shorter side is enlarged by a whole factor, with hard edges: its pixels are worth seeing."""
LEAST_TEXT, TEXT_SHARE = 11, 26
"""Size of the text in pixels at least, and the share of the shorter side that it takes (1/26)."""
_INK, _SHADE = (255, 255, 255, 255), (16, 22, 30, 190)


def drawn(picture: Picture, lines: list[str]) -> Image.Image:
    """The picture with lines of text at its top left, with even sides, as video codecs need them."""
    image = _even(_enlarged(Image.fromarray(np.ascontiguousarray(picture))))
    shade = Image.new("RGBA", image.size)
    draw = ImageDraw.Draw(shade)
    text = "\n".join(lines)
    font, box = _fitting(draw, text, image.size)
    pad = max(3, round(font.size / 2.5))
    width, height = box[2] + 2 * pad, box[3] + 2 * pad
    draw.rectangle((0, 0, width, height), fill=_SHADE)
    draw.multiline_text((pad, pad), text, font=font, fill=_INK)
    return Image.alpha_composite(image.convert("RGBA"), shade).convert("RGB")


def shown_return(value: float) -> str:
    """A return with as many digits as can be read while it changes."""
    digits = 1 if abs(value) >= 100 else 2 if abs(value) >= 1 or value == 0 else 4
    return f"{value:.{digits}f}"


def _enlarged(image: Image.Image) -> Image.Image:
    factor = -(-LEAST_SIDE // max(1, min(image.size)))
    # A strip such as 1000 x 20 would become huge.
    factor = max(1, min(factor, 4 * LEAST_SIDE // max(image.size)))
    return image.resize((image.width * factor, image.height * factor), Image.Resampling.NEAREST)


def _even(image: Image.Image) -> Image.Image:
    """The same picture, with a row or column repeated where a side is odd."""
    width, height = image.width + image.width % 2, image.height + image.height % 2
    if (width, height) == image.size:
        return image
    edges = ((0, height - image.height), (0, width - image.width), (0, 0))
    return Image.fromarray(np.pad(np.asarray(image), edges, mode="edge"))


def _fitting(
    draw: ImageDraw.ImageDraw, text: str, size: tuple[int, int]
) -> tuple[ImageFont.FreeTypeFont, tuple[int, int, int, int]]:
    """The largest font in which the text is not cut off, down to the smallest."""
    points = max(LEAST_TEXT, min(size) // TEXT_SHARE)
    while True:
        font = ImageFont.load_default(points)
        assert isinstance(font, ImageFont.FreeTypeFont)
        left, top, right, bottom = draw.multiline_textbbox((0, 0), text, font=font)
        if right + font.size <= size[0] or points <= LEAST_TEXT // 2:
            return font, (round(left), round(top), round(right), round(bottom))
        points -= 1
