"""How the parts of a policy describe themselves to the native core.

A part has a method `native(plan)` that returns its kind, settings and tensor names. Only a method that the exact class
defines counts: a subclass may compute something else, which only PyTorch can run.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from surefoot.core.config import Activation

Plain = dict[str, Any]
"""Description for the core: strings, numbers, flags, lists of numbers, lists of strings."""


class UnknownToCoreError(Exception):
    """The core does not support a part; the message names it in one line."""


class PlanBuilder:
    """Helpers for parts that describe themselves."""

    def __init__(
        self, policy: nn.Module, activation: Activation, kinds: Mapping[str, Sequence[str]], learns: bool = False
    ) -> None:
        self.activation = activation
        self.learns = learns
        """Whether the plan is for learning: PyTorch then prepares what the core cannot (`Preprocess.for_core`)."""
        self._names: dict[nn.Module, str] = {module: name for name, module in policy.named_modules()}
        self._kinds = kinds

    def name(self, module: nn.Module) -> str:
        """The name of a module inside the policy, which is the prefix of its tensor names."""
        return self._names[module]

    def part(self, role: str, module: nn.Module) -> Any:
        """The description of a part; the core must support its kind."""
        describe = vars(type(module)).get("native")
        if describe is None or "forward" in vars(module):
            raise unknown(role, module)
        described = describe(module, self)
        if role in self._kinds and described["kind"] not in self._kinds[role]:
            raise UnknownToCoreError(f"the native core has no {role} of kind '{described['kind']}'")
        return described

    def torch_module(self, role: str, module: nn.Module, kind: type[nn.Module]) -> str:
        """The name of a PyTorch module, which must be exactly of that class."""
        if type(module) is not kind or "forward" in vars(module):
            raise unknown(role, module)
        return self.name(module)

    def linear(self, layer: nn.Module) -> str:
        """The name of a linear layer with a bias."""
        name = self.torch_module("layer", layer, nn.Linear)
        if layer.bias is None:
            raise UnknownToCoreError(f"the native core supports only layers with a bias; {name} has none")
        return name

    def convolution(self, layer: nn.Module) -> Plain:
        """The name of a convolution with a square kernel and nothing else, its kernel size and its stride."""
        name = self.torch_module("layer", layer, nn.Conv2d)
        assert isinstance(layer, nn.Conv2d)
        is_square = len({*layer.kernel_size}) == len({*layer.stride}) == 1
        extras = layer.padding, layer.dilation, layer.groups
        if not is_square or extras != ((0, 0), (1, 1), 1) or layer.bias is None:
            raise UnknownToCoreError(f"the native core supports only plain convolutions; {name} is {layer}")
        return {"layer": name, "kernel": layer.kernel_size[0], "stride": layer.stride[0]}


def unknown(role: str, module: object) -> UnknownToCoreError:
    """The error for a part that only PyTorch can compute."""
    return UnknownToCoreError(f"the {role} {type(module).__name__} has no native implementation")


def require_plain_modules(policy: nn.Module) -> None:
    """Reject forward hooks, and weights that the core cannot read directly."""
    for prefix, module in policy.named_modules():
        if module._forward_hooks or module._forward_pre_hooks:
            raise UnknownToCoreError(f"the native core does not support the forward hooks of {prefix or 'the policy'}")
        for name, tensor in module._parameters.items():
            if tensor is not None and not (tensor.dtype == torch.float32 and tensor.is_cpu and tensor.is_contiguous()):
                raise UnknownToCoreError(
                    f"the native core supports only contiguous float32 tensors on the CPU, not {prefix}.{name}"
                )
