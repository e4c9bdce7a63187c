"""Long short-term memory (Hochreiter and Schmidhuber 1997), as in PyTorch."""

from torch import Tensor, nn

from surefoot.policies.memory import memories
from surefoot.policies.memory.recurrent import Recurrent
from surefoot.policies.memory.scan import lstm_scan
from surefoot.policies.native_parts import Plain, PlanBuilder


@memories.register("lstm")
class LSTMMemory(Recurrent):
    """The state is (h, c), `[rows, layers, hidden]` each."""

    state_names = ("hidden", "cell")
    keep_gate, take_gate = 1, 0  # of i, f, g, o

    def __init__(self, input_size: int, settings: Recurrent.Settings) -> None:
        super().__init__(nn.LSTM(input_size, settings.hidden_size, settings.layers), settings)

    def scan(
        self, gates: Tensor, weight: Tensor, bias: Tensor, before: list[Tensor], batch_sizes: Tensor, one_path: bool
    ) -> tuple[Tensor, ...]:
        return lstm_scan(gates, weight, bias, before[0], before[1], batch_sizes, one_path)

    def native(self, plan: PlanBuilder) -> Plain:
        return self.native_cells(plan, "lstm", nn.LSTM)
