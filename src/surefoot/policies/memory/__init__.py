"""Recurrent memory between encoder and trunk; one file per kind."""

from torch import Tensor, nn

from surefoot.data.records import State
from surefoot.policies.native_parts import Plain, PlanBuilder, unknown
from surefoot.settings.parts import PartSettings
from surefoot.settings.registry import Registry


class Memory(nn.Module):
    """Base class of memories: takes features of every sample, returns features that include the past."""

    output_size: int
    state_names: tuple[str, ...] = ()
    """Names of the tensors of the state."""

    def __init__(self, input_size: int, settings: PartSettings) -> None:
        super().__init__()

    def initial_state(self, num_rows: int) -> State:
        """The state at the start of an episode, `[num_rows, ...]` each: zeros (S6, docs/semantics.md)."""
        raise NotImplementedError

    def forward(self, features: Tensor, state: State, batch_sizes: Tensor | None) -> tuple[Tensor, State]:
        """One step of every row; or, with `batch_sizes`, complete sequences in the layout of torch's PackedSequence.

        The given state is that of each sequence before its first step, the returned state that after its last step.
        """
        raise NotImplementedError

    def orthogonal_(self) -> None:
        """Initialize weights orthogonally, if there are any."""

    def native(self, plan: PlanBuilder) -> Plain:
        """Kind, settings and tensor names of the memory in the native core; see docs/native.md."""
        raise unknown("memory", self)


memories: Registry[Memory] = Registry("memory", "surefoot.policies.memory", "policy.memory", "Memory")
