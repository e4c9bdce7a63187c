"""No memory."""

from torch import Tensor

from surefoot.data.records import State
from surefoot.policies.memory import Memory, memories
from surefoot.policies.native_parts import Plain, PlanBuilder
from surefoot.settings.parts import PartSettings


@memories.register("none")
class NoMemory(Memory):
    """Features pass through; the state is empty."""

    def __init__(self, input_size: int, settings: PartSettings) -> None:
        super().__init__(input_size, settings)
        self.output_size = input_size

    def initial_state(self, num_rows: int) -> State:
        return ()

    def forward(self, features: Tensor, state: State, batch_sizes: Tensor | None) -> tuple[Tensor, State]:
        return features, ()

    def native(self, plan: PlanBuilder) -> Plain:
        return {"kind": "none"}
