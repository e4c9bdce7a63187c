"""Values that files can hold: numbers, strings, lists and dicts of them."""

from typing import Any

from surefoot.output.quoted import quoted

_DEEPEST, _MOST_PARTS, _MOST_BITS = 32, 100_000, 8192
"""Levels and values of what is passed on to an env, and bits of a whole number: what a checkpoint can hold."""


def plain(value: Any) -> Any:
    """What a file can hold, and gives back as it was."""
    waiting, count = [(value, 0)], 0
    while waiting:
        part, depth = waiting.pop()
        count += 1
        if depth > _DEEPEST or count > _MOST_PARTS:
            raise ValueError(f"contains itself, more than {_DEEPEST} levels or more than {_MOST_PARTS:,} values")
        if isinstance(part, dict):
            odd = next((key for key in part if not isinstance(key, str)), None)
            if odd is not None:
                raise ValueError(f"must have strings as keys, not {quoted(odd)}")
            waiting += [(one, depth + 1) for one in (*part, *part.values())]
        elif isinstance(part, list | tuple):
            waiting += [(one, depth + 1) for one in part]
        else:
            _check_plain(part)
    return value


def _check_plain(part: Any) -> None:
    if not isinstance(part, str | int | float | None):
        raise ValueError(f"must consist of numbers, strings, lists and dicts, not {type(part).__name__}")
    if isinstance(part, int) and part.bit_length() > _MOST_BITS:
        raise ValueError(f"has a whole number of {part.bit_length()} bits; the maximum is {_MOST_BITS}")
    if isinstance(part, str) and not part.isascii():
        try:
            part.encode()
        except UnicodeEncodeError:
            raise ValueError(f"has a text that is not Unicode: {quoted(part)}") from None
