"""Plain building blocks: multilayer perceptrons and their initialization."""

import math
from collections.abc import Callable, Sequence

from torch import Tensor, nn
from torch.nn import functional

from surefoot.core.config import Activation
from surefoot.policies.tanh import tanh

ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "tanh": tanh,
    "relu": functional.relu,
    "elu": functional.elu,
    "silu": functional.silu,
    "leaky_relu": functional.leaky_relu,
    "gelu": functional.gelu,
}


class MLP(nn.Module):
    """Linear layers, each followed by the activation. One module call for all: calls cost more than small layers."""

    def __init__(self, input_size: int, hidden: Sequence[int], activation: Activation) -> None:
        super().__init__()
        self._activation = ACTIVATIONS[activation]
        sizes = [input_size, *hidden]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, hidden, strict=False))
        self.output_size = sizes[-1]

    def forward(self, features: Tensor) -> Tensor:
        for layer in self.layers:
            assert isinstance(layer, nn.Linear)
            features = self._activation(functional.linear(features, layer.weight, layer.bias))
        return features


def orthogonal_(module: nn.Module, gain: float = math.sqrt(2)) -> nn.Module:
    """Orthogonal weights with the given gain and zero biases, for every linear and conv layer inside."""
    for layer in module.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d):
            nn.init.orthogonal_(layer.weight, gain)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
    return module
