"""Reads saved states that anybody may have written: each entry is checked as it is read, and errors name its path."""

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from surefoot.errors import CheckpointError, CheckpointMismatchError, SurefootError

MOST = 2**53
"""The largest counter: beyond it, floats are not exact."""
_LISTED = 20
"""Maximum number of differences in a message."""
_KINDS: dict[type, str] = {
    dict: "a dict",
    list: "a list",
    tuple: "a list",
    str: "a string",
    Tensor: "a tensor",
    np.ndarray: "an array",
}
_NUMBER = (bool, int, float, np.bool_, np.number)


class Saved:
    """An entry of a saved state, with its path."""

    def __init__(self, value: Any, path: str = "") -> None:
        self.value, self.path = value, path

    def __getitem__(self, name: str) -> "Saved":
        found = self.entries().get(name)
        if found is None:
            raise CheckpointError(f"{self._of(name)} is missing")
        return found

    def get(self, name: str) -> "Saved | None":
        """An entry of a dict, or None if it is missing or None."""
        found = self.entries().get(name)
        return None if found is None or found.value is None else found

    def entries(self) -> dict[str, "Saved"]:
        """The entries of a dict by name."""
        if not isinstance(self.value, Mapping):
            raise self.wrong("a dict")
        return {name: Saved(value, self._of(name)) for name, value in self.value.items()}

    def items(self) -> list["Saved"]:
        """The entries of a list."""
        if not isinstance(self.value, list | tuple):
            raise self.wrong("a list")
        return [Saved(value, self._of(place)) for place, value in enumerate(self.value)]

    def integer(self, least: int = 0, most: int = MOST) -> int:
        """A whole number between limits."""
        if not isinstance(self.value, int) or isinstance(self.value, bool) or not least <= self.value <= most:
            raise self.wrong(f"a whole number from {least} to {most}")
        return self.value

    def number(self, least: float = -math.inf) -> float:
        """A finite number that is not below a limit."""
        if not _is_number(self.value) or self.value < least:
            raise self.wrong("a finite number" + f" of at least {least:g}" * (least > -math.inf))
        return float(self.value)

    def text(self) -> str:
        """A string."""
        if not isinstance(self.value, str):
            raise self.wrong("a string")
        return self.value

    def array(self) -> Any:
        """A tensor or an array of numbers."""
        if not isinstance(self.value, Tensor | np.ndarray):
            raise self.wrong("an array")
        return self.value

    def only(self, names: Iterable[str]) -> "Saved":
        """A dict of some entries, all of which must be there."""
        return Saved({name: self[name].value for name in names}, self.path)

    def like(self, own: Any, free: str = "") -> None:
        """Refuse what differs from our own state in names, types, lengths or shapes, or is not finite.

        None stands for a number that is not set. Entries named `free` are not compared.
        """
        odd = list(self._differences(own, free))
        if odd:
            more = f"; and {len(odd) - _LISTED} more" if len(odd) > _LISTED else ""
            raise CheckpointMismatchError("; ".join(odd[:_LISTED]) + more)
        self.finite(free)

    def finite(self, free: str = "") -> None:
        """Refuse NaN and infinity in any of the arrays; entries named `free` are not read."""
        if isinstance(self.value, Tensor | np.ndarray) and not is_finite(self.value):
            raise CheckpointError(f"{self.path} contains NaN or infinity")
        if isinstance(self.value, Mapping):
            for name, entry in self.entries().items():
                if name != free:
                    entry.finite(free)
        elif isinstance(self.value, list | tuple):
            for entry in self.items():
                entry.finite(free)

    def _differences(self, own: Any, free: str) -> Iterator[str]:
        value = self.value
        if isinstance(own, Mapping) and isinstance(value, Mapping):
            theirs = self.entries()
            yield from (f"{self._of(name)} is missing" for name in own if name not in theirs)
            yield from (f"{self._of(name)} is unknown" for name in theirs if name not in own)
            for name, one in own.items():
                if name in theirs and name != free:
                    yield from theirs[name]._differences(one, free)
        elif isinstance(own, list | tuple) and isinstance(value, list | tuple):
            if len(value) != len(own):
                yield f"{self.path} has {len(value)} entries, not {len(own)}"
                return
            for theirs_one, one in zip(self.items(), own, strict=True):
                yield from theirs_one._differences(one, free)
        elif isinstance(own, Tensor | np.ndarray) and isinstance(value, type(own)):
            if tuple(value.shape) != tuple(own.shape):
                yield f"{self.path} has shape {tuple(value.shape)}, not {tuple(own.shape)}"
            elif value.dtype != own.dtype:
                yield f"{self.path} has dtype {value.dtype}, not {own.dtype}"
        elif isinstance(own, str) and isinstance(value, str):
            pass
        elif not ((own is None or isinstance(own, _NUMBER)) and (value is None or _is_number(value))):
            yield str(self.wrong(_KINDS.get(type(own), "a number")))

    def wrong(self, expected: str) -> CheckpointError:
        """The error for an entry that is not what is expected."""
        return CheckpointError(f"{self.path or 'the state'} must be {expected}, not {_shown(self.value)}")

    def _of(self, name: Any) -> str:
        return f"{self.path}.{name}" if self.path else str(name)


def is_finite(array: Any) -> bool:
    """Whether a tensor or an array has neither NaN nor infinity."""
    return bool(torch.isfinite(array).all() if isinstance(array, Tensor) else np.isfinite(array).all())


def _is_number(value: Any) -> bool:
    try:
        return isinstance(value, _NUMBER) and math.isfinite(value)
    except OverflowError:  # a whole number that no float can hold, such as the state of a random generator
        return True


def _shown(value: Any) -> str:
    """A value in a few characters."""
    if isinstance(value, Tensor | np.ndarray):
        return f"an array of shape {tuple(value.shape)} and dtype {value.dtype}"
    if isinstance(value, Mapping | list | tuple):
        return f"a {type(value).__name__} of {len(value)}"
    text = repr(value) if isinstance(value, str | float | bool | None) else str(value)[:60]
    return text if len(text) <= 60 else text[:57] + "..."


@contextmanager
def reading(source: Path | str) -> Iterator[None]:
    """Errors inside name the file; what no check has foreseen becomes a CheckpointError, too."""
    try:
        yield
    except CheckpointError as error:
        if str(source) in str(error):
            raise
        raise type(error)(f"{source} cannot be loaded: {error}") from error
    except SurefootError:
        raise
    except (Exception, RecursionError) as error:
        raise CheckpointError(f"{source} is damaged: {type(error).__name__}: {error}") from error
