"""Adam and AdamW on one flat tensor, by PyTorch's public function."""

from typing import Any

import torch
from torch import Tensor
from torch.optim import adam as adam_module

from surefoot.core.config import OptimizerConfig
from surefoot.native.kernels import kernels

MOMENTS = ("exp_avg", "exp_avg_sq")
adam: Any = adam_module.adam
_SKIP_ON_DEVICE = ("cpu", "cuda")
"""Devices whose fused kernel is known to take `found_inf`."""


class Adam:
    """Moments and step count; hyperparameters come from the config and are never restored from a checkpoint (S14)."""

    def __init__(self, parameters: Tensor, config: OptimizerConfig) -> None:
        self._parameters = parameters
        self.moments = {kind: torch.zeros_like(parameters) for kind in MOMENTS}
        self.count = parameters.new_zeros(())
        self._is_fused = parameters.device.type in _SKIP_ON_DEVICE
        self._options: dict[str, Any] = dict(zip(("beta1", "beta2"), config.betas, strict=True))
        self._options |= {"eps": config.adam_eps, "weight_decay": config.weight_decay}
        self._options |= {"decoupled_weight_decay": config.algorithm == "adamw", "amsgrad": False, "maximize": False}

    def step(self, gradient: Tensor, lr: float, skipped: Tensor) -> None:
        """One step; if `skipped` is 1, weights, moments and count are unchanged."""
        moments = [[self.moments[kind]] for kind in MOMENTS]
        tensors = ([self._parameters], [gradient], *moments, [], [self.count])
        if self._is_fused and kernels() is not None:  # `found_inf` skips without a device sync
            adam(*tensors, lr=lr, fused=True, found_inf=skipped, **self._options)
        elif not skipped:
            adam(*tensors, lr=lr, foreach=False, **self._options)
