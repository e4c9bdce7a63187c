"""Recurrent memory for a single step, which a graph can express without a loop over sequences."""

from typing import Any

import torch
from torch import Tensor, nn

from surefoot.data.records import State
from surefoot.policies.memory.recurrent import Recurrent


class OneStep(nn.Module):
    """Layers of PyTorch's cells with the weights of a recurrent memory."""

    def __init__(self, memory: Recurrent) -> None:
        super().__init__()
        self.cells = memory.cells

    def forward(self, features: Tensor, state: State, batch_sizes: None) -> tuple[Tensor, State]:
        """One step of the memory."""
        after = []
        for layer, weights in enumerate(self.cells.all_weights):
            parts = _cell(self.cells, features, [part[:, layer] for part in state], weights)
            features = parts[0]
            after.append(parts)
        return features, tuple(torch.stack(parts, dim=1) for parts in zip(*after, strict=True))


def replace_memories(module: nn.Module) -> None:
    """Replace recurrent memories with `OneStep`."""
    for name, child in module.named_children():
        if isinstance(child, Recurrent):
            setattr(module, name, OneStep(child))
        else:
            replace_memories(child)


def _cell(cells: nn.RNNBase, features: Tensor, before: list[Tensor], weights: Any) -> tuple[Tensor, ...]:
    if isinstance(cells, nn.LSTM):
        return torch.lstm_cell(features, before, *weights)
    return (torch.gru_cell(features, before[0], *weights),)
