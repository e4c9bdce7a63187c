"""A limit for the memory of modules that a config describes: it is checked before memory is taken."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_FACTORIES = frozenset(
    {
        torch.ops.aten.empty.memory_format,
        torch.ops.aten.zeros.default,
        torch.ops.aten.ones.default,
        torch.ops.aten.full.default,
    }
)


class TooLargeError(Exception):
    """The tensors created so far, and the next one, exceed the limit."""


class AllocationLimit(TorchDispatchMode):
    """Inside, new tensors may take so many bytes in total, and there may be so many of them."""

    def __init__(self, most_bytes: int, most_tensors: int) -> None:
        super().__init__()
        self._bytes, self._tensors = most_bytes, most_tensors

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """PyTorch asks. To skip it, PyTorch would import its compiler, which takes most of a second."""
        return False

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in _FACTORIES:
            dtype = kwargs.get("dtype") or torch.get_default_dtype()
            self._bytes -= math.prod(args[0]) * dtype.itemsize
            self._tensors -= 1
            if self._bytes < 0 or self._tensors < 0:
                raise TooLargeError
        return func(*args, **kwargs)
