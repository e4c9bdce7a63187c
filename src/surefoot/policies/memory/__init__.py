"""Memory between encoder and trunk: what a policy carries from step to step; one file per kind."""

from torch import Tensor, nn

from surefoot.core.parts import PartSettings
from surefoot.core.records import State
from surefoot.core.registry import Registry
from surefoot.policies.native_parts import Plain, PlanBuilder, unknown


class Memory(nn.Module):
    """Base of memories: features of every sample in, features that know the past out."""

    output_size: int
    state_names: tuple[str, ...] = ()
    """What the parts of its state are called."""

    def __init__(self, input_size: int, settings: PartSettings) -> None:
        super().__init__()

    def initial_state(self, num_rows: int) -> State:
        """What is remembered where an episode starts, `[num_rows, ...]` each: zeros (S6)."""
        raise NotImplementedError

    def forward(self, features: Tensor, state: State, batch_sizes: Tensor | None) -> tuple[Tensor, State]:
        """One step of every row; or, with `batch_sizes`, whole sequences packed as torch packs them.

        The state is that of each sequence before its first step, and what is returned that after its last.
        """
        raise NotImplementedError

    def orthogonal_(self) -> None:
        """Start from orthogonal weights, if there are any."""

    def native(self, plan: PlanBuilder) -> Plain:
        """The memory's kind in the native core, with its settings and names of tensors; see docs/native.md."""
        raise unknown("memory", self)


memories: Registry[Memory] = Registry("memory", "surefoot.policies.memory", "policy.memory", "Memory")
