"""The tensors in a file of `torch.save`: only whole arrays of plain floats, and nothing in the file is executed."""

import io
import math
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from surefoot.errors import CheckpointError
from surefoot.sb3.inert_pickle import Name, Noted, Outside, read_inert
from surefoot.sb3.member import read_member

_PICKLE = "/data.pkl"
_TYPES = {"torch.FloatStorage": "f4", "torch.DoubleStorage": "f8", "torch.HalfStorage": "f2"}
_MOST_AXES = 8
_ORDERS = {b"little": "<", b"big": ">"}


@dataclass(frozen=True)
class _Place:
    """Where the numbers of a tensor are."""

    storage: str
    dtype: np.dtype[Any]
    offset: int
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        return math.prod(self.shape)


class SavedTensors:
    """The bytes of a file; its tensors are read when their names are known to be right."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._archive = zipfile.ZipFile(io.BytesIO(data))
        (pickle,) = (name for name in self._archive.namelist() if name.endswith(_PICKLE))
        self._folder = pickle.removesuffix(_PICKLE)
        saved = read_inert(read_member(self._archive, pickle))
        self._entries: Mapping[str, Any] = saved.entries if isinstance(saved, Noted) else dict(saved)

    @property
    def names(self) -> list[str]:
        """The names of the tensors."""
        return list(self._entries)

    def read(self) -> dict[str, Tensor]:
        """The tensors by name; what is not an array of finite floats is an error that names the entry."""
        order = self._byte_order()
        places = {name: _place(name, entry, order) for name, entry in self._entries.items()}
        if sum(place.size * place.dtype.itemsize for place in places.values()) > len(self._data):
            raise CheckpointError("its tensors are larger than the file")
        storages: dict[str, bytes] = {}
        for place in places.values():
            if place.storage not in storages:
                storages[place.storage] = read_member(self._archive, f"{self._folder}/data/{place.storage}")
                if sum(map(len, storages.values())) > len(self._data):
                    raise CheckpointError("its tensors are larger than the file")
        return {name: _tensor(name, place, storages[place.storage]) for name, place in places.items()}

    def _byte_order(self) -> str:
        name = f"{self._folder}/byteorder"
        return _ORDERS[read_member(self._archive, name)] if name in self._archive.namelist() else "<"


def _place(name: str, entry: Any, order: str) -> _Place:
    wrong = CheckpointError(f"{name} is not a plain tensor of floats; save the agent again, on the CPU and in float32")
    if not (isinstance(entry, Noted) and entry.calls("torch._utils._rebuild_tensor_v2")):
        raise wrong
    try:
        storage, offset, shape, strides = entry.arguments[:4]
        mark, kind, key, _, _ = storage.arguments if isinstance(storage, Outside) else [None] * 5
    except (TypeError, ValueError) as error:
        raise wrong from error
    dtype = _TYPES.get(f"{kind.module}.{kind.name}") if isinstance(kind, Name) else None
    if mark != "storage" or dtype is None or not isinstance(key, str) or not _are_counts((offset,)):
        raise wrong
    if not _are_counts(shape) or not _are_counts(strides) or not _is_whole(shape, strides):
        raise CheckpointError(f"{name} is a view or an empty tensor; save the agent again with contiguous weights")
    return _Place(key, np.dtype(order + dtype), offset, shape)


def _are_counts(numbers: Any) -> bool:
    return isinstance(numbers, tuple) and all(type(number) is int and 0 <= number < 2**40 for number in numbers)


def _is_whole(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether there are numbers, in order and without gaps or repetitions."""
    if len(shape) != len(strides) or len(shape) > _MOST_AXES or 0 in shape:
        return False
    steps = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return all(length == 1 or stride == step for length, stride, step in zip(shape, strides, steps, strict=True))


def _tensor(name: str, place: _Place, storage: bytes) -> Tensor:
    if (place.offset + place.size) * place.dtype.itemsize > len(storage):
        raise CheckpointError(f"{name} reaches beyond its storage")
    numbers: NDArray[Any] = np.frombuffer(storage, place.dtype, place.size, place.offset * place.dtype.itemsize)
    if not np.isfinite(numbers).all():
        raise CheckpointError(f"{name} contains NaN or infinity")
    return torch.from_numpy(numbers.astype(place.dtype.newbyteorder("=")).reshape(place.shape))
