"""Keeps what was made of a policy until the policy changes."""

from collections.abc import Callable, Sequence
from itertools import chain
from operator import is_
from typing import Any, Generic, TypeVar

from torch import Tensor, nn

from surefoot.native import core
from surefoot.native.kernels import faster_by

Made = TypeVar("Made")
_HOOKS = {"_forward_hooks", "_forward_pre_hooks", "_state_dict_hooks", "_state_dict_pre_hooks"}
_IRRELEVANT = vars(nn.Module()).keys() - {"_parameters", "_buffers", "_modules", *_HOOKS}
"""Attributes of every module in which nothing of a plan or a state is."""


class UntilChanged(Generic[Made]):
    """What a function makes of a policy and other objects, kept until something of them other than numbers changes.

    Modules, attributes, hooks and the places of tensors count; a change inside a list is not noticed. Looking for
    changes is much faster than planning a policy again.
    """

    def __init__(self, make: Callable[..., Made]) -> None:
        self._make = make
        self._objects: tuple[object, ...] = ()
        self._dicts: list[dict[str, Any]] = []
        self._values: list[object] = []  # alive, so that nothing else gets the same place
        self._tensors: list[Tensor] = []
        self._places: list[object] = []

    def of(self, *objects: object) -> Made:
        """What was made of these objects last, or is made of them now."""
        if not self._are_unchanged(objects):
            self._made = self._make(*objects)  # first: after an error, the next call makes it again
            self._look_at(objects)
        return self._made

    def _are_unchanged(self, objects: Sequence[object]) -> bool:
        is_known = len(objects) == len(self._objects) and all(map(is_, objects, self._objects))
        return is_known and _have_values(self._dicts, self._values) and _places(self._tensors) == self._places

    def _look_at(self, objects: tuple[object, ...]) -> None:
        modules = [part for one in objects for part in (one.modules() if isinstance(one, nn.Module) else [one])]
        self._dicts = [vars(one) for one in modules]
        inner = [own[name] for own in self._dicts for name in own if name not in _IRRELEVANT]
        self._dicts += [one for one in inner if isinstance(one, dict)]
        self._objects, self._values = objects, _values(self._dicts)
        self._tensors = [one for one in self._values if isinstance(one, Tensor)]
        self._places = _places(self._tensors)


def _places(tensors: Sequence[Tensor]) -> list[object]:
    return [*map(Tensor.data_ptr, tensors), *map(Tensor.stride, tensors)]


def _values(dicts: Sequence[dict[str, Any]]) -> list[object]:
    return [*chain.from_iterable(map(dict.values, dicts))]


def _have_values_in_core(dicts: list[dict[str, Any]], values: list[object]) -> bool:
    return core().have_values(dicts, values)


@faster_by(_have_values_in_core, lambda dicts, values: True)
def _have_values(dicts: list[dict[str, Any]], values: list[object]) -> bool:
    """Whether the dicts have exactly these objects as values, in order."""
    found = _values(dicts)
    return len(found) == len(values) and all(map(is_, found, values))
