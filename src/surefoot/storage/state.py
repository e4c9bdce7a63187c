"""State by name: stateful objects return and load it as a dict; checkpoints and rollbacks iterate over the names."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from surefoot.errors import CheckpointError, CheckpointMismatchError
from surefoot.output.failures import brief, let_interrupts_through
from surefoot.storage.saved import Saved

_CPU = torch.device("cpu")
_UNCHANGING = (int, float, str, type(None))


class Stateful(Protocol):
    """Has state: numbers, strings, lists, dicts, arrays and tensors, but nothing that follows from the config."""

    def state(self) -> dict[str, Any]:
        """The state needed to continue bit for bit."""

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from a saved state."""


@runtime_checkable
class ChecksState(Protocol):
    """Checks a saved state before any object is changed."""

    def check_state(self, saved: Saved) -> None:
        """Raise a CheckpointError that names the first entry that is wrong."""


class ModuleState:
    """The weights and buffers of a module."""

    def __init__(self, module: nn.Module, what: str) -> None:
        self._module, self._what = module, what

    def state(self) -> dict[str, Any]:
        """The module's state dict."""
        return dict(self._module.state_dict())

    def check_state(self, saved: Saved) -> None:
        """Refuse missing, unknown or differently shaped tensors, and NaN; all differences are listed."""
        try:
            Saved(saved.value).like(dict(self._module.state_dict()))
        except CheckpointMismatchError as error:
            raise CheckpointMismatchError(f"the checkpoint does not fit this {self._what}: {error}") from error
        for name, module in self._module.named_modules():
            if isinstance(module, ChecksState):
                own = {key: value for key, value in saved.value.items() if key.startswith(f"{name}.")}
                module.check_state(Saved({key.removeprefix(f"{name}."): value for key, value in own.items()}, name))

    def load_state(self, state: dict[str, Any]) -> None:
        """Load the module's state dict."""
        self._module.load_state_dict(state)


def states(stateful: Mapping[str, Stateful]) -> dict[str, Any]:
    """The state of each, by name; its tensors are on the CPU, so that any machine can load them."""
    return {name: on_device(one.state(), _CPU) for name, one in stateful.items()}


def on_device(value: Any, device: torch.device) -> Any:
    """A state with its tensors on a device; those that are there already are not copied."""
    if isinstance(value, dict):
        return {key: on_device(inner, device) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(on_device(inner, device) for inner in value)
    return value.to(device) if isinstance(value, Tensor) else value


def load_states(stateful: Mapping[str, Stateful], saved: Mapping[str, Any]) -> None:
    """Check that every state is present and fits, then load all of them; on an error nothing is changed."""
    missing = [name for name, one in stateful.items() if name not in saved and not getattr(one, "is_optional", False)]
    if missing:
        raise CheckpointError(f"the checkpoint has no state of {', '.join(missing)}")
    check_present(stateful, Saved(saved))
    before, begun = copied(states(stateful)), []
    try:
        for name, one in stateful.items():
            begun.append(name)
            load_present({name: one}, saved)
    except BaseException:  # code of a user, or an env, refused what the checks let pass
        for name in begun:
            stateful[name].load_state(before[name])
        raise


def check_present(stateful: Mapping[str, Any], saved: Saved) -> None:
    """Check the states of those that have one, by name."""
    entries = saved.entries()
    for name, one in stateful.items():
        if name in entries and isinstance(one, ChecksState):
            one.check_state(entries[name])


def load_present(stateful: Mapping[str, Any], saved: Mapping[str, Any]) -> None:
    """Load the states of those that have one, by name; an error names it."""
    for name, one in stateful.items():
        if name not in saved:
            continue
        try:
            one.load_state(saved[name])
        except CheckpointError as error:
            raise type(error)(f"{name}: {error}") from error
        except BaseException as error:  # code of a user may even call sys.exit
            let_interrupts_through(error)
            raise CheckpointError(f"{name} cannot load its state: {brief(error)}") from error


def copied(value: Any) -> Any:
    """A deep copy of a state, so that the next update does not change it."""
    if isinstance(value, dict):
        return {key: copied(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(copied(inner) for inner in value)
    if isinstance(value, Tensor):
        return value.clone()
    return value if isinstance(value, _UNCHANGING) else deepcopy(value)
