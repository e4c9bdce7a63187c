"""Pictures of Surefoot's abstract tasks: plain shapes, drawn with Pillow."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

Picture = NDArray[np.uint8]
WIDTH, HEIGHT = 480, 320
_PAPER, _INK, _FAINT = "#ffffff", "#1b2430", "#d5dce4"
_AGENT, _GOOD, _BAD = "#2f6db5", "#1f7a4d", "#b3412f"
_COLORS = ("#2f6db5", "#d98c21", "#1f7a4d", "#b3412f", "#7d5ba6", "#4aa3a2", "#8a6d3b", "#5d6b7c")


class _Canvas:
    """A picture in the making."""

    def __init__(self) -> None:
        self._image = Image.new("RGB", (WIDTH, HEIGHT), _PAPER)
        self.draw = ImageDraw.Draw(self._image)

    def text(self, place: tuple[float, float], text: str, color: str = _INK, size: int = 15) -> None:
        """Text around a place."""
        self.draw.text(place, text, fill=color, font=ImageFont.load_default(size), anchor="mm")

    def dot(self, place: tuple[float, float], radius: float, color: str) -> None:
        """A filled circle."""
        x, y = place
        self.draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=color)

    def picture(self) -> Picture:
        """What was drawn."""
        return np.asarray(self._image, dtype=np.uint8)


def draw_corridor(cells: int, cell: int, start: int, risky: str, safe: str) -> Picture:
    """RiskyCorridor: a row of cells from the risky end to the safe one."""
    canvas, side, top = _Canvas(), (WIDTH - 40) / cells, HEIGHT / 2
    ends = {0: _BAD, cells - 1: _GOOD}
    for number in range(cells):
        x = 20 + number * side
        outline = ends.get(number, _FAINT)
        canvas.draw.rectangle((x + 2, top - side / 2, x + side - 2, top + side / 2), outline=outline, width=3)
    canvas.text((20 + (start + 0.5) * side, top - side / 2 - 16), "start")
    canvas.text((90, top + side / 2 + 24), risky, _BAD)
    canvas.text((WIDTH - 90, top + side / 2 + 24), safe, _GOOD)
    canvas.dot((20 + (cell + 0.5) * side, top), side / 3.2, _AGENT)
    return canvas.picture()


def draw_maze(length: int, position: int, is_cue_up: bool, arm: int) -> Picture:
    """TMaze: the corridor, the cue at its start, and the arm that was taken (1 up, -1 down, 0 none yet)."""
    canvas, left, right, middle, reach = _Canvas(), 60.0, WIDTH - 60.0, HEIGHT / 2, 90.0
    canvas.draw.line((left, middle, right, middle), fill=_FAINT, width=26)
    canvas.draw.line((right, middle - reach - 13, right, middle + reach + 13), fill=_FAINT, width=26)
    sign = 1 if is_cue_up else -1
    tip = middle - sign * 46
    canvas.draw.line((left, middle - sign * 20, left, tip), fill=_GOOD, width=5)
    canvas.draw.polygon([(left - 9, tip), (left + 9, tip), (left, tip - sign * 14)], fill=_GOOD)
    canvas.text((left, middle + sign * 34), "cue", _GOOD if position == 0 else _FAINT)
    canvas.dot((right, middle - sign * reach), 8, _GOOD)
    canvas.dot((left + (right - left) * position / length, middle - arm * reach), 11, _AGENT)
    return canvas.picture()


def draw_symbols(shown: Sequence[int], asked: int, answer: int | None) -> Picture:
    """RepeatPrevious: the symbols so far, newest at the right; `asked` is the index of the one to repeat, or -1."""
    canvas, most = _Canvas(), 10
    first, side = max(0, len(shown) - most), (WIDTH - 40) / most
    for index, symbol in enumerate(shown):
        x = 20 + (most - len(shown) + index) * side
        if index >= first:
            canvas.draw.rectangle((x + 3, 110, x + side - 3, 104 + side), fill=_color(symbol))
        if index == asked >= first:
            canvas.draw.rectangle((x - 1, 106, x + side + 1, 108 + side), outline=_INK, width=3)
    if answer is not None:
        canvas.text((WIDTH / 2 - 60, 244), "answer")
        canvas.draw.rectangle((WIDTH / 2 - 18, 222, WIDTH / 2 + 26, 266), fill=_color(answer))
    return canvas.picture()


def draw_market(prices: Sequence[float], equity: Sequence[float], position: float, horizon: int) -> Picture:
    """Market: the log price and the equity so far, and the position from short to long."""
    canvas = _Canvas()
    for values, top, color, name in ((prices, 64, _INK, "price"), (equity, 170, _AGENT, "equity")):
        canvas.text((36, top + 44), name, color, 14)
        _curve(canvas, values, (70, top, WIDTH - 20, top + 88), horizon, color)
    canvas.text((36, 292), "position", _INK, 14)
    middle = (70 + WIDTH - 20) / 2
    canvas.draw.rectangle((70, 284, WIDTH - 20, 300), outline=_FAINT)
    end = middle + position * (middle - 70)
    canvas.draw.rectangle((min(middle, end), 285, max(middle, end), 299), fill=_GOOD if position >= 0 else _BAD)
    return canvas.picture()


def _curve(
    canvas: _Canvas, values: Sequence[float], box: tuple[float, float, float, float], length: int, color: str
) -> None:
    left, top, right, bottom = box
    canvas.draw.rectangle(box, outline=_FAINT)
    low, high = min(values), max(values)
    scale = (bottom - top - 8) / (high - low) if high > low else 0.0
    points = [
        (left + (right - left) * number / max(1, length), bottom - 4 - (value - low) * scale)
        for number, value in enumerate(values)
    ]
    canvas.draw.line(points, fill=color, width=2)
    canvas.dot(points[-1], 3, color)


def _color(symbol: int) -> str:
    return _COLORS[symbol % len(_COLORS)]
