"""How the parts of a policy describe themselves to the native core.

A part has a method `native(plan)` that gives its kind, its settings and the names of its tensors, in its own file. Only
a method that the exact class defines counts: a subclass may compute something else, and then only torch knows what.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from surefoot.core.config import Activation

Plain = dict[str, Any]
"""What the core is told: strings, numbers, flags, lists of numbers, lists of strings."""


class UnknownToCoreError(Exception):
    """The core does not know this; the message says what, in one line."""


class PlanBuilder:
    """What parts ask for while they describe themselves."""

    def __init__(self, policy: nn.Module, activation: Activation, kinds: Mapping[str, Sequence[str]]) -> None:
        self.activation = activation
        self._names: dict[nn.Module, str] = {module: name for name, module in policy.named_modules()}
        self._kinds = kinds

    def name(self, module: nn.Module) -> str:
        """The name of a module inside the policy; its tensors' names begin with it."""
        return self._names[module]

    def part(self, role: str, module: nn.Module) -> Any:
        """What a part says of itself; if it says a kind, the core must know it."""
        describe = vars(type(module)).get("native")
        if describe is None or "forward" in vars(module):
            raise unknown(role, module)
        described = describe(module, self)
        if role in self._kinds and described["kind"] not in self._kinds[role]:
            raise UnknownToCoreError(f"the native core has no {role} of kind '{described['kind']}'")
        return described

    def torch_module(self, role: str, module: nn.Module, kind: type[nn.Module]) -> str:
        """The name of one of torch's own modules, which must be exactly of that kind."""
        if type(module) is not kind or "forward" in vars(module):
            raise unknown(role, module)
        return self.name(module)

    def linear(self, layer: nn.Module) -> str:
        """The name of a linear layer with a bias."""
        name = self.torch_module("layer", layer, nn.Linear)
        if layer.bias is None:
            raise UnknownToCoreError(f"the native core takes layers with a bias; {name} has none")
        return name


def unknown(role: str, module: object) -> UnknownToCoreError:
    """The error for a part that only torch can compute."""
    return UnknownToCoreError(f"the native core does not know the {role} {type(module).__name__}")


def require_plain_modules(policy: nn.Module) -> None:
    """The core runs no hooks, and reads weights where they are."""
    for name, module in policy.named_modules():
        if module._forward_hooks or module._forward_pre_hooks:
            raise UnknownToCoreError(f"the native core does not run the forward hooks of {name or 'the policy'}")
    for name, tensor in policy.named_parameters():
        if tensor.dtype != torch.float32 or tensor.device.type != "cpu" or not tensor.is_contiguous():
            raise UnknownToCoreError(f"the native core takes contiguous float32 on the CPU, which {name} is not")
