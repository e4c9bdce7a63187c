"""`--over NAME=VALUES` of `surefoot evaluate`: the values, and a progress bar over the cells."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from surefoot.errors import ConfigError
from surefoot.output.quoted import quoted
from surefoot.settings.strict_yaml import YamlError, parse_yaml

_RANGE = re.compile(r"(-?\d{1,9})-(-?\d{1,9})")
_MOST_VALUES = 1000


def axes_of(options: Sequence[str]) -> dict[str, list[Any]]:
    """The values of each name: `level=0-9`, `terrain=stairs,gaps` or a YAML list, `terrain=[stairs, "0-9"]`."""
    axes: dict[str, list[Any]] = {}
    for option in options:
        name, equals, text = (part.strip() for part in option.partition("="))
        if not name or not equals or not text:
            raise ConfigError([f"--over: pass NAME=VALUES, such as level=0-9 or terrain=stairs,gaps (got {option!r})"])
        if name in axes:
            raise ConfigError([f"--over: {name} is given twice; put its values in one list"])
        axes[name] = _values(name, text)
    return axes


def _values(name: str, text: str) -> list[Any]:
    if text.startswith("["):
        return list(_parsed(name, text))
    return [value for part in text.split(",") for value in _part(name, part.strip())]


def _part(name: str, text: str) -> list[Any]:
    match = _RANGE.fullmatch(text)
    if match is None:
        return [_parsed(name, text)]
    first, last = int(match[1]), int(match[2])
    if not first <= last < first + _MOST_VALUES:
        raise ConfigError([f"--over: {name}: {text} is not a range of 1 to {_MOST_VALUES} numbers, lowest first"])
    return list(range(first, last + 1))


def _parsed(name: str, text: str) -> Any:
    try:
        value = parse_yaml(text)
    except YamlError as error:
        raise ConfigError([f"--over: {name}: cannot parse {quoted(text)}: {error}"]) from error
    if value is None:
        raise ConfigError([f"--over: {name}: a value is missing in {quoted(text)}"])
    return value


@contextmanager
def cell_progress(cells: int) -> Iterator[Callable[[Any], None]]:
    """A bar on a terminal that is called with every cell; elsewhere nothing."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from surefoot.output.terminal import Terminal

    console = Terminal(stderr=True)
    columns = (BarColumn(bar_width=20), MofNCompleteColumn(), TextColumn("cells"), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("", total=cells)
        yield lambda cell: progress.advance(bar)
