"""The core's kernels for learning; without the core, PyTorch computes the same results more slowly."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from surefoot.errors import InstructionsError, NativeError
from surefoot.native import Core, core

if TYPE_CHECKING:
    from surefoot.native import Threads

Given = ParamSpec("Given")
Result = TypeVar("Result")
_is_readable_only = False
_num_threads = 1


def kernels() -> Core | None:
    """The core, if it is available and enabled."""
    return None if _is_readable_only else core_or_none()


@contextmanager
def readable_only() -> Iterator[None]:
    """Use only PyTorch inside the context: the reference of the kernels."""
    global _is_readable_only
    before, _is_readable_only = _is_readable_only, True
    try:
        yield
    finally:
        _is_readable_only = before


def faster_by(
    fast: Callable[Given, Result], suits: Callable[Given, bool]
) -> Callable[[Callable[Given, Result]], Callable[Given, Result]]:
    """Make a function the reference of a fast one, which takes its place where it suits and kernels are enabled."""

    def choose(reference: Callable[Given, Result]) -> Callable[Given, Result]:
        @wraps(reference)
        def call(*args: Given.args, **kwargs: Given.kwargs) -> Result:
            is_fast = kernels() is not None and suits(*args, **kwargs)
            return fast(*args, **kwargs) if is_fast else reference(*args, **kwargs)

        return call

    return choose


def set_kernel_threads(count: int) -> None:
    """Set the number of threads of the kernels, like `torch.set_num_threads`."""
    global _num_threads
    _num_threads = count


def kernel_thread_count() -> int:
    """The number of threads of the kernels."""
    return _num_threads


def kernel_threads() -> "Threads":
    """The thread pool of the kernels."""
    return _threads(_num_threads, os.getpid())


@cache
def _threads(count: int, process: int) -> "Threads":
    """A forked process has none of its parent's threads, so it creates a new pool and leaks the old one."""
    return core().Threads(count)


@cache
def core_or_none() -> Core | None:
    """The core, if it is available."""
    try:
        return core()
    except InstructionsError:
        raise
    except NativeError:
        return None
