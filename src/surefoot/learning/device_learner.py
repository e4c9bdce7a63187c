"""The learner whose epochs run in PyTorch on another device; the policy that acts stays on the CPU."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from surefoot.data.records import Knobs
from surefoot.errors import PolicyError
from surefoot.learning.gradient import GradientStep, unchanged
from surefoot.learning.learner import Learner
from surefoot.learning.terms import Objective
from surefoot.learning.watch import Measured
from surefoot.output.failures import brief
from surefoot.policies.policy import Policy
from surefoot.rollout.samples import Samples
from surefoot.settings.config import Config


class Mirror:
    """Owns the tensors on the device; they stay the same objects, so that an optimizer can hold on to them.

    Every tensor passes through a buffer in the CPU's memory, which is pinned for CUDA: then no copy waits for another.
    """

    def __init__(self, device: torch.device) -> None:
        self.device, self._is_pinned = device, device.type == "cuda"
        self._there: dict[str, Tensor] = {}
        self._buffers: dict[str, Tensor] = {}

    @torch.no_grad()
    def send(self, policy: Policy) -> Policy:
        """A copy of the policy as it is now: hooks may have changed more than its weights."""
        known: dict[int, Any] = {}
        for name, tensor in self._tensors(policy).items():
            there = self._place_of(name, tensor)
            there.copy_(self._buffers[name].copy_(tensor), non_blocking=self._is_pinned)
            known[id(tensor)] = there
        try:
            return deepcopy(policy, known)  # a tensor in `known` is replaced, not copied
        except Exception as error:
            raise PolicyError(
                f"the policy cannot be copied to {self.device} ({brief(error)}); set train.device to cpu"
            ) from error

    @torch.no_grad()
    def fetch(self, policy: Policy) -> None:
        """Copy weights and statistics back."""
        tensors = self._tensors(policy)
        for name in tensors:
            self._buffers[name].copy_(self._there[name], non_blocking=self._is_pinned)
        self._wait()
        for name, tensor in tensors.items():
            tensor.copy_(self._buffers[name])

    def move(self, tensor: Tensor) -> Tensor:
        """A tensor of samples on the device."""
        return (tensor.pin_memory() if self._is_pinned else tensor).to(self.device, non_blocking=self._is_pinned)

    def _tensors(self, policy: Policy) -> dict[str, Tensor]:
        named = {**dict(policy.named_parameters()), **dict(policy.named_buffers())}
        # Apple GPUs have no float64: running moments stay behind, and policies compute with what follows from them.
        has_double = self.device.type != "mps"
        return {name: tensor for name, tensor in named.items() if has_double or tensor.dtype != torch.float64}

    def _place_of(self, name: str, tensor: Tensor) -> Tensor:
        if name not in self._there:
            there = torch.empty_like(tensor, device=self.device)
            is_learned = isinstance(tensor, nn.Parameter)
            self._there[name] = nn.Parameter(there, tensor.requires_grad) if is_learned else there
            self._buffers[name] = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=self._is_pinned)
        return self._there[name]

    def _wait(self) -> None:
        if self._is_pinned:
            torch.cuda.current_stream(self.device).synchronize()


class DeviceLearner(Learner):
    """The same updates as those of `Learner`. Per update, samples and weights go to the device, and weights return.

    Statistics of observations and returns are updated on the CPU, with every bit that they have there. The moments of
    the optimizer stay on the device.
    """

    def __init__(
        self,
        policy: Policy,
        objective: Objective,
        config: Config,
        device: torch.device,
        reduce: Callable[..., None] = unchanged,
    ) -> None:
        self._mirror = Mirror(device)
        with _current(device):
            copy = self._mirror.send(policy)
            gradient = GradientStep(copy, config.optimizer, config.ppo.max_grad_norm, reduce, policy)
        super().__init__(policy, objective, gradient, config)
        self._there = Learner(copy, objective, gradient, config)

    def _run_epochs(self, samples: Samples, knobs: Knobs) -> Measured:
        with _current(self._mirror.device):
            self._there.policy, self._there.update = self._mirror.send(self.policy), self.update
            measured = self._there._run_epochs(samples.moved(self._mirror.move), knobs)
            self._mirror.fetch(self.policy)
            return measured


def _current(device: torch.device) -> AbstractContextManager[object]:
    """Pinned memory belongs to the current GPU, which is the first one unless told otherwise."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()
