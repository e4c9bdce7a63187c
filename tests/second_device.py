"""A second device that computes real numbers on the CPU, and refuses what a GPU refuses: operations on two devices.

Its tensors say that they are on `meta`, which autograd and `Tensor.to` know. Inside each is a CPU tensor.
"""

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

DEVICE = torch.device("meta")
_SET_DATA: Any = torch.Tensor.data.__set__  # type: ignore[attr-defined]
_COPIES = ("aten::copy_", "aten::_to_copy", "aten::set_")
"""Operations that lead from one device to another."""


class Elsewhere(Tensor):
    """A tensor on the second device."""

    inside: Tensor

    @staticmethod
    def __new__(cls, inside: Tensor) -> "Elsewhere":
        made: Elsewhere = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, inside.shape, strides=inside.stride(), dtype=inside.dtype, device=DEVICE
        )
        made.inside = inside.detach()
        return made

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function == _SET_DATA:
            args[0].inside = args[1].inside
            return None
        with torch._C.DisableTorchFunctionSubclass():  # results that are on the CPU stay plain tensors
            return function(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return run(function, args, kwargs or {})

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"Elsewhere({self.inside})"


class SecondDevice(TorchDispatchMode):
    """Inside, `meta` is the second device; its operations are counted."""

    def __init__(self) -> None:
        super().__init__()
        self.operations = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.operations += any(isinstance(leaf, Elsewhere) for leaf in tree_leaves((args, kwargs)))
        return run(function, args, kwargs or {})


def run(function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """One operation on the CPU tensors inside; its results are where it was told to, or where its arguments are."""
    name = function._schema.name
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    there = [isinstance(tensor, Elsewhere) for tensor in tensors]
    if any(there) and name not in _COPIES:
        here = [t for t, is_there in zip(tensors, there, strict=True) if not is_there and t.dim() > 0]
        if here or (name in ("aten::stack", "aten::cat") and not all(there)):
            raise RuntimeError(f"{name} has tensors on two devices")
    asked = kwargs.get("device")
    goes_there = any(there) if asked is None else torch.device(asked) == DEVICE
    if asked is not None:
        kwargs = kwargs | {"device": "cpu"}
    own_args, own_kwargs = tree_map_only(Elsewhere, lambda tensor: tensor.inside, (args, kwargs))
    result = function(*own_args, **own_kwargs)
    if function._schema.is_mutable and function._schema.name.endswith("_") and tensors:
        return args[0]
    outputs = {id(tensor.inside): tensor for tensor in tensors if isinstance(tensor, Elsewhere)}
    if not goes_there:
        return result
    return tree_map_only(
        Tensor, lambda tensor: outputs[id(tensor)] if id(tensor) in outputs else Elsewhere(tensor), result
    )
