"""Gated recurrent units (Cho et al. 2014), as in PyTorch."""

from torch import Tensor, nn

from surefoot.policies.memory import memories
from surefoot.policies.memory.recurrent import Recurrent
from surefoot.policies.memory.scan import gru_scan
from surefoot.policies.native_parts import Plain, PlanBuilder


@memories.register("gru")
class GRUMemory(Recurrent):
    """The state is (h,), `[rows, layers, hidden]`."""

    state_names = ("hidden",)
    keep_gate = 1  # of r, z, n

    def __init__(self, input_size: int, settings: Recurrent.Settings) -> None:
        super().__init__(nn.GRU(input_size, settings.hidden_size, settings.layers), settings)

    def scan(
        self, gates: Tensor, weight: Tensor, bias: Tensor, before: list[Tensor], batch_sizes: Tensor, one_path: bool
    ) -> tuple[Tensor, ...]:
        return gru_scan(gates, weight, bias, before[0], batch_sizes, one_path)

    def native(self, plan: PlanBuilder) -> Plain:
        return self.native_cells(plan, "gru", nn.GRU)
