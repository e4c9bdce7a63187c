"""A heat map: a table of numbers as a picture whose colors show their size."""

from collections.abc import Sequence
from math import isfinite
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from surefoot.errors import ConfigError
from surefoot.output.failures import brief

_LOW, _HIGH, _NONE = (240, 245, 250), (18, 74, 130), (225, 225, 225)
_PAPER, _INK, _LIGHT_INK = "#ffffff", "#1b2430", "#ffffff"
_TEXT, _ROW, _PAD, _LEAST_COLUMN = 14, 34, 14, 72


def check_heat_map_file(path: Path, option: str = "heat map") -> None:
    """Refuse a file that cannot be written, before hours of evaluation."""
    if path.suffix.lower() != ".png":
        raise ConfigError([f"{option}: the name of the file must end in .png (got {path})"])
    if path.is_dir() or not path.parent.is_dir():
        raise ConfigError([f"{option}: {path} is not a file in an existing folder; choose another one"])


def save_heat_map(
    path: Path, title: str, rows: Sequence[str], columns: Sequence[str], values: NDArray[np.float64]
) -> None:
    """Write the values `[rows, columns]` with their labels; a darker cell has a larger value, a gray one has none."""
    check_heat_map_file(path)
    font = ImageFont.load_default(_TEXT)
    texts = [[f"{value:.4g}" if isfinite(value) else "none" for value in row] for row in values]
    left = max(_width(font, name) for name in rows) + 2 * _PAD
    widest = max(_width(font, text) for text in [*columns, *(cell for row in texts for cell in row)])
    side, top = max(_LEAST_COLUMN, widest + _PAD), 2 * _ROW
    size = (max(left + side * len(columns), _width(font, title)) + _PAD, top + _ROW * len(rows) + _PAD)
    image = Image.new("RGB", size, _PAPER)
    draw = ImageDraw.Draw(image)
    draw.text((_PAD, _ROW / 2), title, fill=_INK, font=font, anchor="lm")
    for column, name in enumerate(columns):
        draw.text((left + (column + 0.5) * side, 1.5 * _ROW), name, fill=_INK, font=font, anchor="mm")
    for row, name in enumerate(rows):
        middle = top + (row + 0.5) * _ROW
        draw.text((left - _PAD, middle), name, fill=_INK, font=font, anchor="rm")
        for column, share in enumerate(_shares(values)[row]):
            x, y = left + column * side, top + row * _ROW
            color = tuple(round(a + (b - a) * share) for a, b in zip(_LOW, _HIGH, strict=True)) if share >= 0 else _NONE
            draw.rectangle((x, y, x + side - 2, y + _ROW - 2), fill=color)
            ink = _LIGHT_INK if share > 0.5 else _INK
            draw.text((x + side / 2, middle), texts[row][column], fill=ink, font=font, anchor="mm")
    try:
        image.save(path, format="PNG")
    except OSError as error:
        raise ConfigError([f"cannot write {path}: {error.strerror or brief(error)}"]) from error


def _shares(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """From 0 for the lowest value to 1 for the highest; -1 for none."""
    known = values[np.isfinite(values)]
    span = np.ptp(known) if known.size else 0.0
    shares = (values - known.min()) / span if span else np.full(values.shape, 0.5)
    return np.where(np.isfinite(values), shares, -1.0)


def _width(font: ImageFont.FreeTypeFont | ImageFont.ImageFont, text: str) -> int:
    return round(font.getlength(text))
