"""Values that files can hold: numbers, strings, lists and dicts of them."""

from typing import Any

from surefoot.output.quoted import quoted

_DEEPEST, _MOST_VALUES, _MOST_BITS = 32, 100_000, 8192
"""Levels and values of what is passed on to an env, and bits of a whole number: what a checkpoint can hold."""


def plain(value: Any) -> Any:
    """What a file can hold, and gives back as it was."""
    waiting, count = [(value, 0)], 0
    while waiting:
        inner, depth = waiting.pop()
        count += 1
        if depth > _DEEPEST or count > _MOST_VALUES:
            raise ValueError(f"contains itself, more than {_DEEPEST} levels or more than {_MOST_VALUES:,} values")
        if isinstance(inner, dict):
            odd = next((key for key in inner if not isinstance(key, str)), None)
            if odd is not None:
                raise ValueError(f"must have strings as keys, not {quoted(odd)}")
            waiting += [(one, depth + 1) for one in (*inner, *inner.values())]
        elif isinstance(inner, list | tuple):
            waiting += [(one, depth + 1) for one in inner]
        else:
            _check_plain(inner)
    return value


def _check_plain(value: Any) -> None:
    if not isinstance(value, str | int | float | None):
        raise ValueError(f"must consist of numbers, strings, lists and dicts, not {type(value).__name__}")
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        raise ValueError(f"has a whole number of {value.bit_length()} bits; the maximum is {_MOST_BITS}")
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError(f"has a text that is not Unicode: {quoted(value)}") from None
