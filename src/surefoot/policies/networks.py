"""Plain building blocks: multilayer perceptrons and their initialization."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from surefoot.native.kernels import core_or_none
from surefoot.policies.native_parts import PlanBuilder, UnknownToCoreError
from surefoot.settings.config import Activation

ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh,
    "relu": functional.relu,
    "elu": functional.elu,
    "silu": functional.silu,
    "leaky_relu": functional.leaky_relu,
    "gelu": functional.gelu,
}


class MLP(nn.Module):
    """Linear layers, each followed by the activation."""

    def __init__(self, input_size: int, hidden: Sequence[int], activation: Activation) -> None:
        super().__init__()
        self._activation = activation
        sizes = [input_size, *hidden]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, hidden, strict=False))
        self.output_size = sizes[-1]

    def forward(self, features: Tensor) -> Tensor:
        for layer in self.layers:
            features = ACTIVATIONS[self._activation](layer(features))
        return features

    def native(self, plan: PlanBuilder) -> list[str]:
        """The names of the layers."""
        if self._activation != plan.activation:
            raise UnknownToCoreError(
                f"the native core supports one activation for all networks; {plan.name(self)} has another"
            )
        return [plan.linear(layer) for layer in self.layers]


def orthogonal_(module: nn.Module, gain: float = math.sqrt(2)) -> nn.Module:
    """Orthogonal weights with the given gain and zero biases, for every linear and conv layer inside."""
    for layer in module.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d):
            orthogonal_weight_(layer.weight, gain)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
    return module


@torch.no_grad()
def orthogonal_weight_(weight: Tensor, gain: float = 1.0) -> None:
    """As `torch.nn.init.orthogonal_`, but computed in float64, and by the core in one order on every machine."""
    normals = weight.new_empty(weight.shape).normal_().flatten(1).double()
    is_wide = normals.shape[0] < normals.shape[1]
    vectors = (normals if is_wide else normals.T).contiguous()
    if (core := core_or_none()) is not None:
        core.orthonormalize(vectors.numpy())
    else:
        q, r = torch.linalg.qr(vectors.T)
        vectors = (q * r.diagonal().sign()).T
    weight.copy_(gain * (vectors if is_wide else vectors.T).reshape(weight.shape))
