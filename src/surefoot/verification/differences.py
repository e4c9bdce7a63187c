"""How far apart two tensors are: the number of unequal elements, or the largest difference."""

import hashlib
import math
from collections.abc import Mapping

import torch
from torch import Tensor

Tensors = Mapping[str, Tensor]


def count_unequal(ours: Tensor, reference: Tensor) -> int:
    """Number of elements whose bits differ; all of them if shapes or types differ."""
    if ours.shape != reference.shape or ours.dtype != reference.dtype:
        return max(ours.numel(), reference.numel(), 1)
    if ours.numel() == 0:
        return 0
    bits = [_bytes(tensor).view(tensor.numel(), tensor.element_size()) for tensor in (ours, reference)]
    return int((bits[0] != bits[1]).any(-1).sum())


def largest_difference(ours: Tensor, reference: Tensor) -> float:
    """Largest absolute difference; infinite if shapes differ or only one of the two is finite."""
    if ours.shape != reference.shape:
        return math.inf
    if ours.numel() == 0:
        return 0.0
    difference = (ours.double() - reference.double()).abs()
    # Equal infinities have no difference, which would be NaN.
    difference[ours == reference] = 0.0
    largest = float(difference.max())
    return math.inf if math.isnan(largest) else largest


def magnitude(reference: Tensor) -> float:
    """The scale of rounding errors in a tensor: its largest absolute element, but at least 1."""
    return max(1.0, float(reference.abs().max())) if reference.numel() else 1.0


def digest(tensors: Tensors) -> str:
    """SHA-256 of all tensors and their names."""
    result = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name]
        result.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        result.update(_bytes(tensor).numpy().tobytes())
    return result.hexdigest()


def _bytes(tensor: Tensor) -> Tensor:
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)
