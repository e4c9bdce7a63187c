"""State by name: parts return and load their state as a dict; checkpoints and rollbacks iterate over the names."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from torch import Tensor, nn

from surefoot.core.errors import CheckpointError, CheckpointMismatchError


class Stateful(Protocol):
    """Has state: numbers, strings, lists, dicts, arrays and tensors, but nothing that follows from the config."""

    def state(self) -> dict[str, Any]:
        """The state needed to continue bit for bit."""

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from a saved state."""


@runtime_checkable
class ChecksState(Protocol):
    """Checks a saved state before any part is changed."""

    def check_state(self, state: dict[str, Any]) -> None:
        """Raise a CheckpointMismatchError if the state does not fit."""


class ModuleState:
    """The weights and buffers of a module."""

    def __init__(self, module: nn.Module, what: str) -> None:
        self._module, self._what = module, what

    def state(self) -> dict[str, Any]:
        """The module's state dict."""
        return dict(self._module.state_dict())

    def check_state(self, state: dict[str, Any]) -> None:
        """Refuse missing, unknown or differently shaped tensors."""
        check_shapes(self._module, state, self._what)

    def load_state(self, state: dict[str, Any]) -> None:
        """Load the module's state dict."""
        self._module.load_state_dict(state)


def states(parts: Mapping[str, Stateful]) -> dict[str, Any]:
    """The state of each part, by name."""
    return {name: part.state() for name, part in parts.items()}


def load_states(parts: Mapping[str, Stateful], saved: Mapping[str, Any]) -> None:
    """Check that every part's state is present and fits, then load all of them; on an error nothing is changed."""
    missing = [name for name in parts if name not in saved]
    if missing:
        raise CheckpointError(f"the checkpoint has no state of {', '.join(missing)}")
    for name, part in parts.items():
        if isinstance(part, ChecksState):
            part.check_state(saved[name])
    for name, part in parts.items():
        part.load_state(saved[name])


def check_shapes(module: nn.Module, state: Mapping[str, Tensor], what: str) -> None:
    """Refuse missing, unknown or differently shaped tensors, listing them."""
    ours = {name: tuple(value.shape) for name, value in module.state_dict().items()}
    theirs = {name: tuple(value.shape) for name, value in state.items()}
    differences = [f"{name} is missing" for name in ours if name not in theirs]
    differences += [f"{name} is unknown" for name in theirs if name not in ours]
    differences += [
        f"{name} has shape {theirs[name]}, not {shape}"
        for name, shape in ours.items()
        if name in theirs and theirs[name] != shape
    ]
    if differences:
        raise CheckpointMismatchError(f"the checkpoint does not fit this {what}: {'; '.join(differences)}")
