"""Tanh with a gradient: learning takes the core's kernel, which needs a tenth of the time of torch's."""

from typing import Any

import torch
from torch import Tensor

from surefoot.native.kernels import kernels


def tanh(values: Tensor) -> Tensor:
    """As torch gives it; where a gradient is wanted, as the core gives it, equal but for the last bit."""
    if values.requires_grad and _is_plain(values) and kernels() is not None:
        result: Tensor = _CoreTanh.apply(values)
        return result
    return torch.tanh(values)


class _CoreTanh(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, values: Tensor) -> Tensor:
        core, result = kernels(), torch.empty_like(values)
        assert core is not None
        core.tanh(values.detach().numpy(), result.numpy())
        context.save_for_backward(result)
        return result

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Tensor:
        (result,) = context.saved_tensors
        return torch.ops.aten.tanh_backward(gradient, result)  # type: ignore[no-any-return]


def _is_plain(values: Tensor) -> bool:
    return values.dtype == torch.float32 and values.is_cpu and values.is_contiguous()
