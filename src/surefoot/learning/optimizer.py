"""Adam with a clipped gradient, fused, without waiting for the device; a step with a bad gradient is skipped."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from surefoot.core.config import OptimizerConfig
from surefoot.core.errors import CheckpointMismatchError

_KERNELS: dict[str, Callable[..., None]] = {"adam": torch._fused_adam_, "adamw": torch._fused_adamw_}
"""What torch's own optimizers call; with small networks, what they do around it would take several times as long."""
_MOMENTS = ("exp_avg", "exp_avg_sq")
_CLIP_EPSILON = 1e-6


class GradientStep:
    """Owns the optimizer; its hyperparameters come from the config and are never restored from a checkpoint (S14).

    The module's parameters become views of one flat tensor: with small networks, handling a dozen tensors one by one
    costs more than the arithmetic.
    """

    def __init__(self, module: nn.Module, config: OptimizerConfig, max_norm: float | None) -> None:
        self._named = {name: p for name, p in module.named_parameters() if p.requires_grad}
        self._max_norm = math.inf if max_norm is None else max_norm
        self._flat = torch.cat([p.detach().flatten() for p in self._named.values()])
        self._gradient = torch.zeros_like(self._flat)
        self._is_begun = False
        self._views = dict(_slices(self._named))
        for name, parameter in self._named.items():
            parameter.data = self._flat[self._views[name]].view(parameter.shape)
        self._parameters = list(self._named.values())
        self._moments = {kind: torch.zeros_like(self._gradient) for kind in _MOMENTS}
        self._count = torch.zeros(())
        self._kernel, self._lr = _KERNELS[config.algorithm], config.lr
        self._constants = {"beta1": config.betas[0], "beta2": config.betas[1], "eps": config.adam_eps}
        self._constants["weight_decay"] = config.weight_decay

    def set_lr(self, lr: float) -> None:
        """The learning rate of the steps to come."""
        self._lr = lr

    def add(self, loss: Tensor, share: float = 1.0) -> None:
        """Add a loss's gradient, weighted by its share of the samples, to the step to come."""
        pieces = torch.autograd.grad(loss, self._parameters, materialize_grads=True)
        flat = [piece.reshape(-1) for piece in pieces]
        if self._is_begun:
            self._gradient.add_(torch.cat(flat), alpha=share)
        else:  # large networks are bound by memory here: every pass over the gradient counts
            torch.cat(flat, out=self._gradient)
            if share != 1.0:
                self._gradient.mul_(share)
        self._is_begun = True

    @torch.no_grad()
    def step(self) -> Tensor:
        """Clip, step and forget the gradient; [its norm, 1 if it was not finite and the step therefore skipped]."""
        norm = self._gradient.norm()
        self._gradient.mul_((self._max_norm / (norm + _CLIP_EPSILON)).clamp(max=1))
        taken = norm.isfinite().float()
        self._count += taken
        skipped = 1 - taken
        moments = [[self._moments[kind]] for kind in _MOMENTS]
        # `found_inf` is the kernel's own switch: 1 leaves weights and moments as they are.
        self._kernel(
            [self._flat],
            [self._gradient],
            *moments,
            [],
            [self._count],
            lr=self._lr,
            **self._constants,
            amsgrad=False,
            maximize=False,
            found_inf=skipped,
        )
        self._is_begun = False
        return torch.stack((norm, skipped))

    def state(self) -> dict[str, Any]:
        """The step count, and the moments by parameter name; nothing that the config decides."""
        if not self._count:
            return {}
        return {"step": self._count.clone()} | {
            kind: {
                name: self._moments[kind][self._views[name]].view(parameter.shape).clone()
                for name, parameter in self._named.items()
            }
            for kind in _MOMENTS
        }

    def check_state(self, state: dict[str, Any]) -> None:
        """Refuse moments of another network before anything is touched."""
        ours = {name: parameter.shape for name, parameter in self._named.items()}
        for kind in _MOMENTS:
            theirs = {name: moment.shape for name, moment in state[kind].items()} if state else ours
            if theirs != ours:
                odd = sorted(name for name in theirs | ours if theirs.get(name) != ours.get(name))
                raise CheckpointMismatchError(
                    f"the checkpoint's optimizer belongs to another network; it differs at {', '.join(odd)}"
                )

    def load_state(self, state: dict[str, Any]) -> None:
        """From a checkpoint; hyperparameters stay those of the config."""
        self.check_state(state)
        self._count.copy_(state["step"] if state else torch.zeros(()))
        for kind, moment in self._moments.items():
            moment.copy_(torch.cat([state[kind][name].flatten() for name in self._named]) if state else torch.zeros(()))


def _slices(named: dict[str, nn.Parameter]) -> list[tuple[str, slice]]:
    found, begin = [], 0
    for name, parameter in named.items():
        found.append((name, slice(begin, begin + parameter.numel())))
        begin += parameter.numel()
    return found
