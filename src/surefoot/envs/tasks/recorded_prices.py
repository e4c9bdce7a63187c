"""Log returns from a CSV file of prices, checked line by line."""

import csv
import math
import os
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import gymnasium as gym

from surefoot.output.quoted import quoted

Row = tuple[int, list[str]]
"""A line's number and cells."""


def recorded_returns(path: Any, column: Any = None) -> tuple[float, ...]:
    """The log return between each price of a column and the next; envs of the same file share them."""
    if not isinstance(path, str | os.PathLike):
        raise gym.error.Error(f"prices must be the path of a CSV file, not {quoted(path)}")
    if column is not None and not isinstance(column, str):
        raise gym.error.Error(f"column must be the name of a column, not {quoted(column)}")
    file = Path(path).expanduser()
    try:
        status = file.stat() if file.is_file() else None
    except (OSError, ValueError) as error:
        raise gym.error.Error(f"prices: '{file}' cannot be read: {error}") from error
    if status is None:
        raise gym.error.Error(f"prices: '{file}' is not a file; set prices to the path of a CSV file")
    return _returns(file, column, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=4)
def _returns(file: Path, column: str | None, changed_ns: int, size: int) -> tuple[float, ...]:
    """The time of the last change and the size are part of the key: an edited file is read again."""
    try:
        # A mark at the beginning, which some programs write, does not belong to the first name.
        with file.open(encoding="utf-8-sig", newline="") as stream:
            prices = _prices(file, _rows(csv.reader(stream, strict=True)), column)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise gym.error.Error(f"prices: '{file}' cannot be read as a CSV file in UTF-8: {error}") from error
    logs = [math.log(price) for price in prices]
    return tuple(later - earlier for earlier, later in pairwise(logs))


def _rows(reader: Any) -> Iterator[Row]:
    """All lines that are not empty."""
    return ((reader.line_num, cells) for cells in reader if cells)


def _prices(file: Path, rows: Iterator[Row], column: str | None) -> list[float]:
    header = [name.strip() for name in next(rows, (0, []))[1]]
    first = next(rows, None)
    if first is None:
        raise gym.error.Error(f"prices: '{file}' has no prices; write a header and one price per line")
    if all(_is_number(name) for name in header):
        raise gym.error.Error(f"prices: '{file}', line 1 must be a header with the names of the columns, not numbers")
    place = _place(file, header, first, column)
    prices = [_price(file, header, place, first)]
    prices.extend(_price(file, header, place, row) for row in rows)
    return prices


def _place(file: Path, header: list[str], first: Row, column: str | None) -> int:
    """Which column has the prices: the named one, or the only one with numbers."""
    named = [place for place, name in enumerate(header) if name == column]
    if column is not None:
        if len(named) == 1:
            return named[0]
        problem = "several columns" if named else "no column"
        raise gym.error.Error(f"prices: '{file}' has {problem} named '{column}'; it has {quoted(header)}")
    numeric = [place for place, cell in enumerate(first[1][: len(header)]) if _is_number(cell)]
    if len(numeric) == 1:
        return numeric[0]
    names = f"several columns of numbers ({quoted([header[place] for place in numeric])})"
    problem = names if numeric else f"no column of numbers in line {first[0]}"
    raise gym.error.Error(f"prices: '{file}' has {problem}; set column to the name of the one with the prices")


def _price(file: Path, header: list[str], place: int, row: Row) -> float:
    line, cells = row
    if len(cells) != len(header):
        raise gym.error.Error(f"prices: '{file}', line {line} has {len(cells)} cells, but the header has {len(header)}")
    price = float(cells[place]) if _is_number(cells[place]) else math.nan
    if 0.0 < price < math.inf:
        return price
    raise gym.error.Error(
        f"prices: '{file}', line {line}: '{header[place]}' must be a finite number above 0, not {quoted(cells[place])}"
    )


def _is_number(cell: str) -> bool:
    """Whether a cell is a number as CSV files have them: Python also takes underscores."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell
