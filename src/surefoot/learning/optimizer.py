"""Adam with a clipped gradient, fused, without waiting for the device; a step with a bad gradient is skipped."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from surefoot.core.config import OptimizerConfig
from surefoot.core.errors import CheckpointMismatchError

_ALGORITHMS = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
_CLIP_EPSILON = 1e-6


class GradientStep:
    """Owns the optimizer; its hyperparameters come from the config and are never restored from a checkpoint (S14).

    The module's parameters become views of one flat tensor: with small networks, handling a dozen tensors one by one
    costs more than the arithmetic.
    """

    def __init__(self, module: nn.Module, config: OptimizerConfig, max_norm: float | None) -> None:
        self._named = {name: p for name, p in module.named_parameters() if p.requires_grad}
        self._max_norm = math.inf if max_norm is None else max_norm
        self._flat = nn.Parameter(torch.cat([p.detach().flatten() for p in self._named.values()]))
        self._gradient = torch.zeros_like(self._flat)
        self._flat.grad = self._gradient
        self._is_begun = False
        self._views = dict(_slices(self._named))
        for name, parameter in self._named.items():
            parameter.data = self._flat.detach()[self._views[name]].view(parameter.shape)
        self._parameters = list(self._named.values())
        self._optimizer: Any = _ALGORITHMS[config.algorithm](
            [self._flat],
            lr=config.lr,
            betas=config.betas,
            eps=config.adam_eps,
            weight_decay=config.weight_decay,
            fused=True,
        )

    def set_lr(self, lr: float) -> None:
        """The learning rate of the steps to come."""
        self._optimizer.param_groups[0]["lr"] = lr

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
        skipped = 1 - norm.isfinite().float()
        # The fused kernel's own switch: 1 leaves weights, moments and step count as they are.
        self._optimizer.found_inf = skipped
        self._optimizer.step()
        self._is_begun = False
        return torch.stack((norm, skipped))

    def state(self) -> dict[str, Any]:
        """The step count, and the moments by parameter name; nothing that the config decides."""
        moments = self._optimizer.state.get(self._flat)
        if not moments:
            return {}
        return {"step": moments["step"].clone()} | {
            kind: {
                name: moments[kind][self._views[name]].view(parameter.shape).clone()
                for name, parameter in self._named.items()
            }
            for kind in ("exp_avg", "exp_avg_sq")
        }

    def check_state(self, state: dict[str, Any]) -> None:
        """Refuse moments of another network before anything is touched."""
        ours = {name: parameter.shape for name, parameter in self._named.items()}
        for kind in ("exp_avg", "exp_avg_sq"):
            theirs = {name: moment.shape for name, moment in state[kind].items()} if state else ours
            if theirs != ours:
                odd = sorted(name for name in theirs | ours if theirs.get(name) != ours.get(name))
                raise CheckpointMismatchError(
                    f"the checkpoint's optimizer belongs to another network; it differs at {', '.join(odd)}"
                )

    def load_state(self, state: dict[str, Any]) -> None:
        """From a checkpoint; hyperparameters stay those of the config."""
        self.check_state(state)
        if not state:
            self._optimizer.state.clear()
            return
        self._optimizer.state[self._flat] = {"step": state["step"].clone()} | {
            kind: torch.cat([state[kind][name].flatten() for name in self._named]) for kind in ("exp_avg", "exp_avg_sq")
        }


def _slices(named: dict[str, nn.Parameter]) -> list[tuple[str, slice]]:
    found, begin = [], 0
    for name, parameter in named.items():
        found.append((name, slice(begin, begin + parameter.numel())))
        begin += parameter.numel()
    return found
