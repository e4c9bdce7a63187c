"""The core for learning, which can do without it: where it is missing, torch computes the same, only slower."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from surefoot.core.errors import NativeError
from surefoot.native import Core, core

if TYPE_CHECKING:
    from surefoot.native import Threads

_is_readable_only = False
_num_threads = 1


def kernels() -> Core | None:
    """The core, if it is there and wanted."""
    return None if _is_readable_only else core_or_none()


@contextmanager
def readable_only() -> Iterator[None]:
    """Torch alone inside: what the kernels are held to."""
    global _is_readable_only
    before, _is_readable_only = _is_readable_only, True
    try:
        yield
    finally:
        _is_readable_only = before


def set_kernel_threads(count: int) -> None:
    """How many threads kernels may take, as torch has it for its own."""
    global _num_threads
    _num_threads = count


def kernel_thread_count() -> int:
    """How many threads kernels may take now."""
    return _num_threads


def kernel_threads() -> "Threads":
    """What kernels run on."""
    return _threads(_num_threads, os.getpid())


@cache
def _threads(count: int, process: int) -> "Threads":
    """A fork has none of its parent's threads, so it makes its own; the parent's cannot be let go there."""
    return core().Threads(count)


@cache
def core_or_none() -> Core | None:
    """The core, if it is there."""
    try:
        return core()
    except NativeError:
        return None
