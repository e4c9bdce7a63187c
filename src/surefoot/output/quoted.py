"""Quotes values of users in error messages."""

from reprlib import Repr
from typing import Any

_LONGEST = 60


class _Beginning(Repr):
    """Of large and nested lists and dicts only the beginning; of others the whole `repr`."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxstring, self.maxlong = 4, 10_000, 10_000
        self.maxdict = self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = 12

    def repr_instance(self, x: Any, level: int) -> str:
        return repr(x)


_BEGINNING = _Beginning()


def quoted(value: object) -> str:
    """A value in one line of bounded length, even if its `repr` fails."""
    try:
        text = " ".join(_BEGINNING.repr(value).split())
    except Exception:
        return f"a {type(value).__name__}"
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."
