"""Statistics of a rollout in the core, equal to their references within rounding, for float32 on the CPU."""

import torch
from torch import Tensor

from surefoot.native import core


def normalized_in_core(values: Tensor, valid: Tensor) -> Tensor:
    """Zero mean and unit standard deviation over the valid elements, as `normalized` computes them."""
    made = torch.empty(values.shape)
    core().standardize(values.contiguous().numpy(), valid.contiguous().numpy(), made.numpy())
    return made


def fit_in_core(values: Tensor, returns: Tensor) -> tuple[float, float]:
    """How well values predict returns, as `fit` computes it."""
    return core().fit(values.contiguous().numpy(), returns.contiguous().numpy())
