"""Shared by GRU and LSTM: layers of cells over packed sequences."""

import math

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from surefoot.data.records import State
from surefoot.machine.torch_defaults import autocast, is_autocast
from surefoot.policies.memory import Memory
from surefoot.policies.native_parts import Plain, PlanBuilder, UnknownToCoreError
from surefoot.policies.networks import orthogonal_weight_
from surefoot.settings.config import Count
from surefoot.settings.parts import PartSettings

LONGEST = 100
"""Initial time constant of the slowest cells, in steps."""


class Recurrent(Memory):
    """Layers of cells; a PyTorch module holds their weights under the usual names."""

    class Settings(PartSettings):
        """The size of the memory."""

        hidden_size: Count = Field(64, description="size of the hidden state")
        layers: Count = Field(1, description="number of recurrent layers")

    cells: nn.RNNBase
    keep_gate: int
    """Index of the gate that keeps the past."""
    take_gate: int | None = None
    """Index of the input gate, if it is separate from the keep gate."""

    def __init__(self, cells: nn.RNNBase, settings: Settings) -> None:
        super().__init__(cells.input_size, settings)
        self.cells = cells
        self.output_size = settings.hidden_size

    def initial_state(self, num_rows: int) -> State:
        shape = (num_rows, self.cells.num_layers, self.cells.hidden_size)
        return tuple(torch.zeros(shape) for _ in self.state_names)

    def forward(self, features: Tensor, state: State, batch_sizes: Tensor | None) -> tuple[Tensor, State]:
        if batch_sizes is None:
            batch_sizes = torch.tensor([len(features)], device="cpu")  # like torch's, they are never on a device
        # Low-precision layers after it would amplify differences between the core and PyTorch in the last bits.
        one_path = is_autocast(features.device)
        features, last = features.to(state[0].dtype), []  # full precision, because errors would accumulate
        with autocast(features.device, enabled=False):
            for layer, (weight_ih, weight_hh, bias_ih, bias_hh) in enumerate(self.cells.all_weights):
                gates = functional.linear(features, weight_ih, bias_ih)
                before = [tensor[:, layer].contiguous() for tensor in state]
                features, *after = self.scan(gates, weight_hh, bias_hh, before, batch_sizes, one_path)
                last.append(after)
        return features, tuple(torch.stack(tensors, dim=1) for tensors in zip(*last, strict=True))

    def scan(
        self, gates: Tensor, weight: Tensor, bias: Tensor, before: list[Tensor], batch_sizes: Tensor, one_path: bool
    ) -> tuple[Tensor, ...]:
        """One layer over all steps: its outputs in packed order, then each tensor of the final state."""
        raise NotImplementedError

    def native_cells(self, plan: PlanBuilder, kind: str, cells: type[nn.RNNBase]) -> Plain:
        """Settings and tensor names of standard layers of cells for the native core."""
        name = plan.torch_module("cells", self.cells, cells)
        if self.cells.bidirectional or not self.cells.bias or self.cells.proj_size:
            raise UnknownToCoreError(f"the native core supports only standard recurrent layers, not {name}")
        return {"kind": kind, "layers": self.cells.num_layers, "hidden": self.cells.hidden_size, "name": name}

    def orthogonal_(self) -> None:
        """Orthogonal weights per gate; zero biases except those that set the time constant of each cell.

        Time constants from one to a hundred steps, log-spaced, let gradients reach far back (Tallec and Ollivier 2018).
        """
        size = self.cells.hidden_size
        log_steps = torch.linspace(0, math.log(LONGEST), size)
        for name, parameter in self.cells.named_parameters():
            gates = parameter.detach().split(size)
            if name.startswith("weight"):
                for gate in gates:
                    orthogonal_weight_(gate)
                continue
            nn.init.zeros_(parameter)
            if name.startswith("bias_ih"):
                gates[self.keep_gate].copy_(log_steps)
                if self.take_gate is not None:
                    gates[self.take_gate].copy_(-log_steps)
