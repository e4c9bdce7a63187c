"""Evaluations over a grid: one at every combination of some parameters and arguments of the envs; and heat maps."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import isfinite, prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from surefoot.errors import ConfigError, EnvError, SurefootError
from surefoot.evaluation.evaluation import Evaluation
from surefoot.output.failures import brief
from surefoot.output.quoted import quoted
from surefoot.settings.registry import nearest
from surefoot.statistics.alpha import DEFAULT_ALPHA
from surefoot.telemetry import names

MOST_CELLS = 1000
MEAN_REWARD = names.EVAL_REWARD.removeprefix(names.EVAL_PREFIX)

Cell = dict[str, Any]
"""A value for every name of a grid."""
_LOW, _HIGH, _NONE = (240, 245, 250), (18, 74, 130), (225, 225, 225)
_PAPER, _INK, _LIGHT_INK = "#ffffff", "#1b2430", "#ffffff"
_TEXT, _ROW, _PAD, _LEAST_COLUMN = 14, 34, 14, 72


@dataclass(frozen=True, repr=False)
class Grid:
    """An evaluation per cell; the values of the last name vary fastest."""

    over: dict[str, tuple[Any, ...]]
    """The values of each name."""
    evaluations: tuple[Evaluation, ...]

    def __repr__(self) -> str:
        return "\n".join(self.table())

    def __iter__(self) -> Iterator[tuple[Cell, Evaluation]]:
        return zip(cells_of(self.over), self.evaluations, strict=True)

    def at(self, **cell: Any) -> Evaluation:
        """The evaluation of a cell: `grid.at(level=3, terrain="gaps")`."""
        found = next((evaluation for here, evaluation in self if here == cell), None)
        if found is None:
            raise ConfigError(f"the grid has no cell {named(cell) or 'without values'}; it is over {self._shown}")
        return found

    def figure(self, metric: str = MEAN_REWARD, alpha: float = DEFAULT_ALPHA) -> NDArray[np.float64]:
        """One figure of every cell, with an axis per name: `mean_reward`, `cvar`, a metric of the env; NaN for none."""
        summaries = [evaluation.summary(alpha) for evaluation in self.evaluations]
        known = dict.fromkeys(name.removeprefix(names.EVAL_PREFIX) for one in summaries for name in one)
        if metric not in known:
            hint = nearest(metric, list(known))
            raise ConfigError(f"these evaluations have no figure '{metric}'{hint} (known: {', '.join(known)})")
        values = [one.get(names.EVAL_PREFIX + metric, np.nan) for one in summaries]
        return np.array(values).reshape([len(values) for values in self.over.values()])

    def table(self, metric: str = MEAN_REWARD, alpha: float = DEFAULT_ALPHA) -> list[str]:
        """Lines of text: a column for every value of the last name, a row for every combination of the others."""
        rows, columns, values = self._sheet(metric, alpha)
        cells = [[f"{value:.4g}" for value in row] for row in values]
        if metric == MEAN_REWARD:
            spread = self._sheet(names.EVAL_REWARD_STD.removeprefix(names.EVAL_PREFIX), alpha)[2]
            cells = [
                [f"{value} ± {std:.3g}" for value, std in zip(*pair, strict=True)]
                for pair in zip(cells, spread, strict=True)
            ]
        label = max(map(len, rows))
        widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
        lines = [
            "   ".join([f"{name:{label}s}", *(f"{cell:>{width}s}" for cell, width in zip(row, widths, strict=True))])
            for name, row in zip(["", *rows], [columns, *cells], strict=True)
        ]
        return [f"{metric}, {len(self.evaluations[0].rewards)} episodes per cell", *lines]

    def save_heat_map(self, path: Path | str, metric: str = MEAN_REWARD, alpha: float = DEFAULT_ALPHA) -> None:
        """The same table as a picture, a .png file."""
        rows, columns, values = self._sheet(metric, alpha)
        save_heat_map(Path(path), metric, rows, columns, values)

    def to_json(self, alpha: float = DEFAULT_ALPHA) -> dict[str, Any]:
        """The grid as JSON, with the whole evaluation of every cell."""
        over = {name: list(values) for name, values in self.over.items()}
        return {"over": over, "cells": [{"at": cell, **found.to_json(alpha)} for cell, found in self]}

    def _sheet(self, metric: str, alpha: float) -> tuple[list[str], list[str], NDArray[np.float64]]:
        """Labels of rows and columns, and the figures `[rows, columns]`."""
        *others, (last, across) = self.over.items()
        values = self.figure(metric, alpha)
        if not others:
            return [named({last: value}) for value in across], [metric], values[:, None]
        rows = [named(cell) for cell in cells_of(dict(others))]
        return rows, [named({last: value}) for value in across], values.reshape(len(rows), -1)

    @property
    def _shown(self) -> str:
        return "; ".join(f"{name} {', '.join(map(str, values))}" for name, values in self.over.items())


def checked_axes(over: Any) -> dict[str, tuple[Any, ...]]:
    """The values of each name, as plain Python values; refuses what is not a grid, or too large a one."""
    if not isinstance(over, Mapping) or not over:
        raise ConfigError(f"over: pass a dict from names to lists of values, not {quoted(over)}")
    axes = {}
    for name, values in over.items():
        if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray) or not len(values):
            raise ConfigError(f"over: {name}: pass a list of values, not {quoted(values)}")
        axes[str(name)] = tuple(value.tolist() if isinstance(value, np.generic) else value for value in values)
        if len(set(map(repr, axes[name]))) < len(values):
            raise ConfigError(f"over: {name}: a value appears twice")
    if (count := prod(map(len, axes.values()))) > MOST_CELLS:
        raise ConfigError(f"over: {count} cells, but at most {MOST_CELLS} can be evaluated; pass fewer values")
    return axes


def cells_of(over: Mapping[str, Sequence[Any]]) -> Iterator[Cell]:
    """All combinations, the values of the last name fastest."""
    return (dict(zip(over, values, strict=True)) for values in product(*over.values()))


def named(cell: Cell) -> str:
    """A cell in words."""
    return ", ".join(f"{name}={value}" for name, value in cell.items())


def evaluate_cells(over: dict[str, tuple[Any, ...]], evaluate: Callable[[Cell], Evaluation]) -> Grid:
    """Evaluate every cell; an error names the cell."""
    found = []
    for cell in cells_of(over):
        try:
            found.append(evaluate(cell))
        except SurefootError as error:
            raise EnvError(f"at {named(cell)}: {error}") from error
    return Grid(over, tuple(found))


def check_heat_map_file(path: Path, option: str = "heat map") -> None:
    """Refuse a file that cannot be written, before hours of evaluation."""
    if path.suffix.lower() != ".png":
        raise ConfigError(f"{option}: the name of the file must end in .png (got {path})")
    if path.is_dir() or not path.parent.is_dir():
        raise ConfigError(f"{option}: {path} is not a file in an existing folder; choose another one")


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
        raise ConfigError(f"cannot write {path}: {error.strerror or brief(error)}") from error


def _shares(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """From 0 for the lowest value to 1 for the highest; -1 for none."""
    known = values[np.isfinite(values)]
    span = np.ptp(known) if known.size else 0.0
    shares = (values - known.min()) / span if span else np.full(values.shape, 0.5)
    return np.where(np.isfinite(values), shares, -1.0)


def _width(font: ImageFont.FreeTypeFont | ImageFont.ImageFont, text: str) -> int:
    return round(font.getlength(text))
