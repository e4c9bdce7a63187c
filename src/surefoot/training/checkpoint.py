"""Checkpoint files: one .safetensors file, everything but tensors as JSON in its metadata, no pickle anywhere.

Files are written to a temporary file in the same directory, synced and renamed: a reader sees the old file or the new
one. The size of the header, the version and a checksum are checked, so that damaged or hostile files are rejected.
"""

import hashlib
import json
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.torch
import torch
from torch import Tensor

from surefoot.errors import CheckpointError
from surefoot.machine.ram import free_ram, readable
from surefoot.storage.saved import Saved, reading
from surefoot.training.migrations import FORMAT_VERSION, migrate

TEMPORARY_SUFFIX = ".tmp"
_FORMAT = "surefoot"
_MAX_HEADER_BYTES = 16 * 2**20
_MAX_DEPTH = 100
_COPIES = 2
"""The bytes of the file, and the tensors made of them."""
_TENSOR, _ARRAY, _SCALAR, _BYTES = "__tensor__", "__array__", "__scalar__", "__bytes__"
_PAIRS = "__pairs__"
"""Marks a dict with keys other than strings, or one that looks like a mark itself."""
_COLLECTIONS: dict[str, type] = {"__tuple__": tuple, "__set__": set, "__frozenset__": frozenset}
_MARKS = {_TENSOR, _ARRAY, _SCALAR, _BYTES, _PAIRS, *_COLLECTIONS}
_MAX_INT_BITS = 8192
"""Python does not read integers with thousands of digits from text."""


def write_checkpoint(path: Path, state: Mapping[str, Any]) -> None:
    """Write a nested state of tensors, arrays and JSON values; on OSError the old file is unchanged."""
    write_atomically(path, _serialize(state))


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file completely or not at all, even after a crash."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}{TEMPORARY_SUFFIX}")
    try:
        temporary.unlink(missing_ok=True)
        with temporary.open("xb") as file:  # a new file: never through a symbolic link
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(path.parent)


def read_checkpoint(path: Path) -> dict[str, Any]:
    """The state of a checkpoint, or a typed error that names the problem."""
    metadata = _read_metadata(path)
    version = int(metadata["version"])
    if version > FORMAT_VERSION:
        raise CheckpointError(
            f"{path} has format version {version}, but this Surefoot reads up to {FORMAT_VERSION}; upgrade Surefoot"
        )
    needed, free = _COPIES * path.stat().st_size, free_ram()
    if needed > free:
        raise CheckpointError(f"{path} takes {readable(needed)} of memory to read, but only {readable(free)} are free")
    try:
        tensors = safetensors.torch.load(path.read_bytes())
    except (safetensors.SafetensorError, OSError, ValueError, KeyError, MemoryError) as error:
        raise CheckpointError(f"{path} is damaged: {error}") from error
    with reading(path):
        text = metadata.get("state", "")
        if metadata.get("checksum") != _checksum(text, tensors):
            raise CheckpointError(f"{path} is damaged: its checksum does not match")
        plain = json.loads(text)
        _refuse_deep(plain)
        state = _unpack(plain, tensors)
        Saved(state).entries()
        return migrate(state, version)


def check_savable(state: Mapping[str, Any]) -> None:
    """Reject a state that cannot be saved, before training starts."""
    _serialize(state)


def _read_metadata(path: Path) -> dict[str, str]:
    """The metadata in the header, after checks that do not trust the file."""
    foreign = CheckpointError(f"{path} is not a Surefoot checkpoint; pass a .safetensors file that Surefoot wrote")
    try:
        info = path.lstat()
        if not stat.S_ISREG(info.st_mode):
            raise CheckpointError(f"{path} is not a regular file; symbolic links are not followed")
        with path.open("rb") as file:
            start = file.read(8)
            length = _header_bytes(start)
            if not 2 <= length <= _MAX_HEADER_BYTES:
                raise foreign
            if length > info.st_size - 8:
                raise CheckpointError(f"{path} is damaged: it is truncated")
            header = json.loads(file.read(length))
    except FileNotFoundError as error:
        raise CheckpointError(f"{path} does not exist") from error
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise foreign from error
    metadata = header.get("__metadata__") if isinstance(header, dict) else None
    if not isinstance(metadata, dict) or metadata.get("format") != _FORMAT:
        raise foreign
    if re.fullmatch("[0-9]{1,9}", str(metadata.get("version"))) is None:
        raise CheckpointError(f"{path} is damaged: it has no valid format version")
    return metadata


def _refuse_deep(value: Any) -> None:
    """Refuse a state so deeply nested that the functions that walk through it would not return."""
    level = [value]
    for _ in range(_MAX_DEPTH):
        level = [
            item
            for one in level
            for item in (one.values() if isinstance(one, Mapping) else one if isinstance(one, list | tuple) else ())
        ]
        if not level:
            return
    raise CheckpointError(f"the state is nested more than {_MAX_DEPTH} levels deep; store large states in arrays")


def _serialize(state: Mapping[str, Any]) -> bytes:
    _refuse_deep(state)
    tensors: dict[str, Tensor] = {}
    text = json.dumps(_pack(state, "", tensors))
    metadata = {
        "format": _FORMAT,
        "version": str(FORMAT_VERSION),
        "state": text,
        "checksum": _checksum(text, tensors),
    }
    data = _with_metadata(safetensors.torch.save(tensors), metadata)
    header_bytes = _header_bytes(data)
    if header_bytes > _MAX_HEADER_BYTES:
        raise CheckpointError(
            f"the header of the checkpoint has {header_bytes} bytes, more than the maximum of {_MAX_HEADER_BYTES};"
            " store large parts of an env's state in arrays, or use fewer envs"
        )
    return data


def _with_metadata(data: bytes, metadata: Mapping[str, str]) -> bytes:
    """The metadata in front of the header, in their order: safetensors writes them in an order that is random."""
    end = 8 + _header_bytes(data)
    entries = data[8:end].strip()[1:]  # without the opening brace
    header = f'{{"__metadata__":{json.dumps(metadata)}'.encode() + (b"," if len(entries) > 1 else b"") + entries
    header += b" " * (-len(header) % 8)
    return b"".join((len(header).to_bytes(8, "little"), header, memoryview(data)[end:]))


def _pack(value: Any, name: str, tensors: dict[str, Tensor]) -> Any:
    """JSON with marked entries for what JSON does not have; tensors are collected under their dotted name."""
    if isinstance(value, Mapping):
        return _pack_dict(value, name, tensors)
    if isinstance(value, list | tuple | set | frozenset):
        items = [_pack(item, f"{name}.{index}", tensors) for index, item in enumerate(value)]
        mark = next((mark for mark, kind in _COLLECTIONS.items() if isinstance(value, kind)), "")
        return {mark: items} if mark else items
    if value is None or (isinstance(value, str | int | float) and not isinstance(value, np.float64)):
        if isinstance(value, int) and value.bit_length() > _MAX_INT_BITS:
            raise CheckpointError(f"{name} is an integer of {value.bit_length()} bits; the maximum is {_MAX_INT_BITS}")
        return value
    return _pack_array(value, name, tensors)


def _pack_dict(value: Mapping[Any, Any], name: str, tensors: dict[str, Tensor]) -> Any:
    named = {key: f"{name}.{key}" if name else str(key) for key in value}
    packed = {key: _pack(item, named[key], tensors) for key, item in value.items()}
    if all(type(key) is str for key in packed) and not (len(packed) == 1 and next(iter(packed)) in _MARKS):
        return packed
    return {_PAIRS: [[_pack(key, f"the key {named[key]}", tensors), item] for key, item in packed.items()]}


def _pack_array(value: Any, name: str, tensors: dict[str, Tensor]) -> dict[str, str]:
    place = name.encode("ascii", "backslashreplace").decode()
    while place in tensors:  # {"a": {"b": ...}, "a.b": ...}
        place += "'"
    if isinstance(value, Tensor) and value.layout is torch.strided and value.device.type != "meta":
        tensors[place] = value.detach().contiguous().to("cpu", copy=True)
        return {_TENSOR: place}
    if isinstance(value, bytes):
        tensors[place] = torch.from_numpy(np.frombuffer(value, np.uint8).copy())
        return {_BYTES: place}
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "fiubc" and value.itemsize <= 8:
        tensors[place] = torch.from_numpy(np.array(value, value.dtype.newbyteorder("="), order="C"))
        return {_ARRAY if isinstance(value, np.ndarray) else _SCALAR: place}
    what = f"{type(value).__name__}{f' of dtype {value.dtype}' if isinstance(value, np.ndarray | np.generic) else ''}"
    raise CheckpointError(
        f"{name} is a {what}; checkpoints support only numbers, strings, bytes, lists, tuples, sets, dicts and arrays"
    )


def _unpack(value: Any, tensors: Mapping[str, Tensor]) -> Any:
    if isinstance(value, list):
        return [_unpack(item, tensors) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((mark, content),) = value.items()
        if mark in _COLLECTIONS:
            return _COLLECTIONS[mark](_unpack(content, tensors))
        if mark == _PAIRS:
            return {_unpack(key, tensors): _unpack(item, tensors) for key, item in content}
        if mark in _MARKS:
            tensor = tensors[content]
            if mark == _BYTES:
                return tensor.numpy().tobytes()
            return tensor if mark == _TENSOR else tensor.numpy() if mark == _ARRAY else tensor.numpy()[()]
    return {key: _unpack(item, tensors) for key, item in value.items()}


def _header_bytes(data: bytes) -> int:
    return int.from_bytes(data[:8], "little") if len(data) >= 8 else 0


def _checksum(text: str, tensors: Mapping[str, Tensor]) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data if tensor.numel() else b"")
    return digest.hexdigest()


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
