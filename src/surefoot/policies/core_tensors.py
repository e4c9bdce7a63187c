"""Tensors on their way to the core."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


def is_plain(tensor: Tensor) -> bool:
    """Whether the core can read and write a tensor's memory as it is."""
    return tensor.dtype == torch.float32 and tensor.is_cpu and tensor.is_contiguous()


def arrays(tensors: Sequence[Tensor]) -> list[Any]:
    """Their memory; gradients do not follow."""
    return [tensor.detach().numpy() for tensor in tensors]
