"""The core for learning, which can do without it: where it is missing, torch computes the same, only slower."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from surefoot.core.errors import NativeError
from surefoot.native import Core, core

_is_readable_only = False


def kernels() -> Core | None:
    """The core, if it is there and wanted."""
    return None if _is_readable_only else _core()


@contextmanager
def readable_only() -> Iterator[None]:
    """Torch alone inside: what the kernels are held to."""
    global _is_readable_only
    before, _is_readable_only = _is_readable_only, True
    try:
        yield
    finally:
        _is_readable_only = before


@cache
def _core() -> Core | None:
    try:
        return core()
    except NativeError:
        return None
