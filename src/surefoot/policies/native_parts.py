"""How the parts of a policy describe themselves to the native core.

A part has a method `native(plan)` that returns its kind, settings and tensor names. Only a method that the exact class
defines counts: a subclass may compute something else, which only PyTorch can run.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import nn

from surefoot.native.kernels import core_or_none
from surefoot.settings.config import Activation

Plain = dict[str, Any]
"""Description for the core: strings, numbers, flags, lists of numbers, lists of strings."""


class UnknownToCoreError(Exception):
    """The core does not support a part; the message names it in one line."""


@dataclass(frozen=True)
class NotNative:
    """In place of a plan: the core cannot do it."""

    reason: str
    """One line."""


@cache
def _known_kinds() -> Mapping[str, Sequence[str]]:
    """The kinds of parts that the core supports, by role."""
    core = core_or_none()
    if core is None:
        raise UnknownToCoreError("the native core is missing")
    kinds: Mapping[str, Sequence[str]] = core.part_kinds()
    return kinds


def description_of(role: str, part: object, *arguments: object) -> Any:
    """How a part describes itself; the core must support its kind."""
    describe = vars(type(part)).get("native")  # a subclass may compute something else
    if describe is None or "forward" in vars(part):
        raise unknown(role, part)
    described, known = describe(part, *arguments), _known_kinds().get(role)
    for one in described if isinstance(described, list) else [described]:
        if known is not None and one["kind"] not in known:
            raise UnknownToCoreError(f"the native core has no {role} of kind '{one['kind']}'")
    return described


class PlanBuilder:
    """Helpers for parts that describe themselves."""

    def __init__(self, policy: nn.Module, activation: Activation, learns: bool = False) -> None:
        self.activation = activation
        self.learns = learns
        """Whether the plan is for learning: PyTorch then prepares what the core cannot (`Preprocess.for_core`)."""
        self._names: dict[nn.Module, str] = {module: name for name, module in policy.named_modules()}

    def name(self, module: nn.Module) -> str:
        """The name of a module inside the policy, which is the prefix of its tensor names."""
        return self._names[module]

    def part(self, role: str, module: nn.Module) -> Any:
        """The description of a part; the core must support its kind."""
        return description_of(role, module, self)

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

    def convolutions(self, layers: Iterable[nn.Module]) -> Plain:
        """Names, channels, kernel sizes and strides of convolutions with a square kernel and nothing else."""
        found = [self._convolution(layer) for layer in layers]
        return {
            "convolutions": [self.name(layer) for layer in found],
            "channels": [layer.out_channels for layer in found],
            "kernels": [layer.kernel_size[0] for layer in found],
            "strides": [layer.stride[0] for layer in found],
        }

    def _convolution(self, layer: nn.Module) -> nn.Conv2d:
        name = self.torch_module("layer", layer, nn.Conv2d)
        assert isinstance(layer, nn.Conv2d)
        is_square = len({*layer.kernel_size}) == len({*layer.stride}) == 1
        extras = layer.padding, layer.dilation, layer.groups
        if not is_square or extras != ((0, 0), (1, 1), 1) or layer.bias is None:
            raise UnknownToCoreError(f"the native core supports only plain convolutions; {name} is {layer}")
        return layer


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
