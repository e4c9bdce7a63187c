"""Tanh with a gradient: learning takes the core's kernel, which needs a tenth of the time of torch's."""

from functools import cache
from typing import Any

import torch
from torch import Tensor

from surefoot.core.errors import NativeError
from surefoot.native import Core, core


def tanh(values: Tensor) -> Tensor:
    """As torch gives it; where a gradient is wanted, as the core gives it, equal but for the last bit."""
    if values.requires_grad and values.dtype == torch.float32 and values.is_contiguous() and _core() is not None:
        result: Tensor = _CoreTanh.apply(values)
        return result
    return torch.tanh(values)


class _CoreTanh(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, values: Tensor) -> Tensor:
        native, result = _core(), torch.empty_like(values)
        assert native is not None
        native.tanh(values.detach().numpy(), result.numpy())
        context.save_for_backward(result)
        return result

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Tensor:
        (result,) = context.saved_tensors
        return torch.ops.aten.tanh_backward(gradient, result)  # type: ignore[no-any-return]


@cache
def _core() -> Core | None:
    try:
        return core()
    except NativeError:
        return None
