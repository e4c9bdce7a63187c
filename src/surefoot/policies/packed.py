"""A policy in a form that travels: tensors as arrays, which need no pickling, and the rest as bytes that rarely change.

Custom policies may keep anything in attributes, so more than a state dict is sent.
"""

import io
import pickle
from dataclasses import dataclass
from typing import Any

import cloudpickle
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from surefoot.errors import PolicyError
from surefoot.output.failures import brief
from surefoot.policies.policy import Policy
from surefoot.settings.parts import PartSettings, Section


@dataclass(frozen=True)
class PackedPolicy:
    """`frame` is the policy with numbered places for its tensors."""

    frame: bytes
    arrays: list[NDArray[Any]]

    @property
    def num_bytes(self) -> int:
        """Its size on the way."""
        return len(self.frame) + sum(array.nbytes for array in self.arrays)


def packed(policy: Policy) -> PackedPolicy:
    """The current policy; arrays are views of its tensors."""
    file = io.BytesIO()
    pickler = _Pickler(file)
    try:
        pickler.dump(policy)
    except Exception as error:
        raise PolicyError(
            f"the policy cannot be sent to other machines ({brief(error)}); keep only what can be pickled in it, or set"
            " rollout.engine to auto"
        ) from error
    return PackedPolicy(file.getvalue(), [tensor.detach().cpu().numpy() for tensor in pickler.tensors])


class ReceivedPolicy:
    """The latest policy that was sent here; its modules are created again only if more than tensors changed."""

    def __init__(self) -> None:
        self._frame, self._tensors = b"", list[Tensor]()
        self._policy: Policy

    def update(self, sent: PackedPolicy) -> Policy:
        """The policy as it was packed."""
        if sent.frame == self._frame:
            for tensor, array in zip(self._tensors, sent.arrays, strict=True):
                np.copyto(tensor.detach().numpy(), array)
            return self._policy
        unpickler = _Unpickler(io.BytesIO(sent.frame), sent.arrays)
        self._policy = unpickler.load()
        self._frame, self._tensors = sent.frame, [unpickler.tensors[place] for place in range(len(sent.arrays))]
        return self._policy


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.tensors: list[Tensor] = []
        self._places: dict[int, int] = {}

    def persistent_id(self, thing: Any) -> Any:
        if type(thing) not in (Tensor, nn.Parameter) or thing.dtype == torch.bfloat16:  # numpy has no bfloat16
            return None
        place = self._places.setdefault(id(thing), len(self._places))
        if place == len(self.tensors):
            self.tensors.append(thing)
        return place, isinstance(thing, nn.Parameter), thing.requires_grad

    def reducer_override(self, thing: Any) -> Any:
        # As plain values: the class of `kind: auto` is made at run time, and would be pickled with pydantic's insides.
        if isinstance(thing, Section) and not isinstance(thing, PartSettings):
            return type(thing).model_validate, (thing.model_dump(),)
        return super().reducer_override(thing)


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, arrays: list[NDArray[Any]]) -> None:
        super().__init__(file)
        self._arrays = arrays
        self.tensors: dict[int, Tensor] = {}

    def persistent_load(self, place: tuple[int, bool, bool]) -> Tensor:
        number, is_parameter, requires_grad = place
        if number not in self.tensors:
            tensor = torch.from_numpy(np.array(self._arrays[number]))
            self.tensors[number] = nn.Parameter(tensor, requires_grad) if is_parameter else tensor
        return self.tensors[number]
