"""State by name: parts give their state as a dict and take it back; checkpoints and rollbacks iterate over names."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from torch import Tensor, nn

from surefoot.core.errors import CheckpointError, CheckpointMismatchError


class Stateful(Protocol):
    """Numbers, strings, lists, dicts, arrays and tensors; what the config decides is not state."""

    def state(self) -> dict[str, Any]:
        """Everything needed to continue bit for bit."""

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from a saved state."""


@runtime_checkable
class ChecksState(Protocol):
    """Has more to say about a saved state before anything is changed."""

    def check_state(self, state: dict[str, Any]) -> None:
        """Raise a CheckpointMismatchError if the state belongs to something else."""


class ModuleState:
    """The weights and buffers of a module."""

    def __init__(self, module: nn.Module, what: str) -> None:
        self._module, self._what = module, what

    def state(self) -> dict[str, Any]:
        """Its state dict."""
        return dict(self._module.state_dict())

    def check_state(self, state: dict[str, Any]) -> None:
        """Refuse missing, unknown or differently shaped tensors."""
        check_shapes(self._module, state, self._what)

    def load_state(self, state: dict[str, Any]) -> None:
        """All of it."""
        self._module.load_state_dict(state)


def states(parts: Mapping[str, Stateful]) -> dict[str, Any]:
    """The state of each part, by name."""
    return {name: part.state() for name, part in parts.items()}


def load_states(parts: Mapping[str, Stateful], saved: Mapping[str, Any]) -> None:
    """Check that every part's state is there and fits, then load them all; nothing is changed if one does not."""
    missing = [name for name in parts if name not in saved]
    if missing:
        raise CheckpointError(f"the checkpoint lacks {', '.join(missing)}")
    for name, part in parts.items():
        if isinstance(part, ChecksState):
            part.check_state(saved[name])
    for name, part in parts.items():
        part.load_state(saved[name])


def check_shapes(module: nn.Module, state: Mapping[str, Tensor], what: str) -> None:
    """Refuse missing, unknown or differently shaped tensors, listing them."""
    ours = {name: tuple(value.shape) for name, value in module.state_dict().items()}
    theirs = {name: tuple(value.shape) for name, value in state.items()}
    differences = [f"no {name}" for name in ours if name not in theirs]
    differences += [f"unknown {name}" for name in theirs if name not in ours]
    differences += [
        f"{name} is {theirs[name]}, not {shape}"
        for name, shape in ours.items()
        if name in theirs and theirs[name] != shape
    ]
    if differences:
        raise CheckpointMismatchError(f"the checkpoint does not fit this {what}: {'; '.join(differences)}")
