"""Adam and AdamW on one flat tensor: torch's fused kernel, and torch's public function as its reference."""

from typing import Any

import torch
from torch import Tensor
from torch.optim import adam as adam_module

from surefoot.core.config import OptimizerConfig
from surefoot.native.kernels import kernels

MOMENTS = ("exp_avg", "exp_avg_sq")
adam: Any = adam_module.adam
_FUSED = {"adam": getattr(torch, "_fused_adam_", None), "adamw": getattr(torch, "_fused_adamw_", None)}
"""The private kernels of torch's optimizers; if a version of torch lacks them, the public function is used."""


class Adam:
    """Moments and step count; hyperparameters come from the config and are never restored from a checkpoint (S14)."""

    def __init__(self, parameters: Tensor, config: OptimizerConfig) -> None:
        self._parameters = parameters
        self.moments = {kind: torch.zeros_like(parameters) for kind in MOMENTS}
        self.count = torch.zeros(())
        self._fused, self._is_decoupled = _FUSED[config.algorithm], config.algorithm == "adamw"
        self._constants: dict[str, Any] = dict(zip(("beta1", "beta2"), config.betas, strict=True))
        self._constants |= {"eps": config.adam_eps, "weight_decay": config.weight_decay}
        self._constants |= {"amsgrad": False, "maximize": False}

    def step(self, gradient: Tensor, lr: float, skipped: Tensor) -> None:
        """One step; if `skipped` is 1, weights, moments and count are unchanged."""
        moments = [[self.moments[kind]] for kind in MOMENTS]
        if self._fused is not None and kernels() is not None:
            self.count += 1 - skipped
            # `found_inf` is the kernel's built-in switch, which avoids a device sync on `skipped`.
            counts = [self.count]
            self._fused(
                [self._parameters], [gradient], *moments, [], counts, lr=lr, found_inf=skipped, **self._constants
            )
        elif not skipped:
            options = {"foreach": False, "lr": lr, "decoupled_weight_decay": self._is_decoupled, **self._constants}
            adam([self._parameters], [gradient], *moments, [], [self.count], **options)  # counts the step itself
