"""Passes tensors to the core."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


def is_plain(tensor: Tensor) -> bool:
    """Whether the core can access the memory of a tensor directly."""
    return tensor.dtype == torch.float32 and tensor.is_cpu and tensor.is_contiguous()


def arrays(tensors: Sequence[Tensor]) -> list[Any]:
    """Numpy views of tensors, without gradients."""
    return [tensor.detach().numpy() for tensor in tensors]
