"""The statistics in a pickle of VecNormalize, of which nothing is executed."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from surefoot.errors import CheckpointError
from surefoot.output.quoted import quoted
from surefoot.policies.normalizer import EPSILON
from surefoot.sb3.inert_pickle import Noted, read_inert
from surefoot.sb3.member import reading_foreign
from surefoot.storage.files import read_regular
from surefoot.storage.saved import Saved

_KIND = "a saved VecNormalize"
_CORES = "numpy.core", "numpy._core"
"""Of numpy 1 and 2."""
_ARRAY = tuple(f"{core}.multiarray._reconstruct" for core in _CORES)
_SCALAR = tuple(f"{core}.multiarray.scalar" for core in _CORES)
_BUFFER = tuple(f"{core}.numeric._frombuffer" for core in _CORES)
_PLAIN = re.compile("f[48]|[iu][1248]")
_MOST_AXES = 8

Moments = dict[str, Tensor]
"""Count, mean and variance."""


@dataclass(frozen=True)
class Statistics:
    """What VecNormalize knows; `obs` is by key, and the key of an observation without keys is empty."""

    normalizes_obs: bool
    normalizes_reward: bool
    clip_obs: float
    clip_reward: float
    gamma: float
    """The discount of the returns whose variance scales rewards."""
    obs: dict[str, Moments]
    returns: Moments | None


def read_statistics(path: Path) -> Statistics:
    """The statistics of a file; one that is damaged, hostile or of another kind is a CheckpointError."""
    with reading_foreign(path, _KIND):
        fields = _state(read_inert(read_regular(path)))
        if not {"norm_obs", "norm_reward", "obs_rms", "ret_rms"} <= fields.keys():
            raise CheckpointError(f"{path} is not {_KIND}: it has no statistics")
        has_obs, has_reward = (_switch(fields, name) for name in ("norm_obs", "norm_reward"))
        more = _number(fields, "epsilon", EPSILON) - EPSILON
        return Statistics(
            *(has_obs, has_reward, _number(fields, "clip_obs"), _number(fields, "clip_reward")),
            gamma=_number(fields, "gamma", 0.99),
            obs=_obs_moments(fields, more) if has_obs else {},
            returns=_moments(fields["ret_rms"], "ret_rms", more) if has_reward else None,
        )


def _obs_moments(fields: Mapping[str, Any], more: float) -> dict[str, Moments]:
    saved = fields["obs_rms"]
    if not isinstance(saved, dict):
        return {"": _moments(saved, "obs_rms", more)}
    return {key: _moments(one, f"obs_rms[{quoted(key)}]", more) for key, one in saved.items()}


def _moments(saved: Any, name: str, more: float) -> Moments:
    """Variances contain by how much VecNormalize's epsilon is larger than that of Surefoot."""
    state = Saved(_state(saved), name)
    moments = {field: _array(state[field].value, f"{name}.{field}") for field in ("count", "mean", "var")}
    for field, array in moments.items():
        if not np.isfinite(array).all():
            raise CheckpointError(f"{name}.{field} contains NaN or infinity")
        if field != "mean" and (array < 0).any():
            raise CheckpointError(f"{name}.{field} must not be negative")
    if moments["count"].shape or moments["mean"].shape != moments["var"].shape:
        shapes = ", ".join(f"{field} {array.shape}" for field, array in moments.items())
        raise CheckpointError(f"{name} has arrays whose shapes do not fit: {shapes}")
    moments["var"] = moments["var"] + more
    if (moments["var"] < 0).any():
        raise CheckpointError(f"{name}.var is smaller than {EPSILON:g}, and so is epsilon; save it with a larger one")
    return {field: torch.from_numpy(np.asarray(array)) for field, array in moments.items()}


def _state(saved: Any) -> dict[str, Any]:
    """The attributes of an object; those of something else are none."""
    return saved.state if isinstance(saved, Noted) and isinstance(saved.state, dict) else {}


def _switch(fields: Mapping[str, Any], name: str) -> bool:
    if not isinstance(fields[name], bool):
        raise CheckpointError(f"{name} must be true or false")
    return bool(fields[name])


def _number(fields: Mapping[str, Any], name: str, default: float = 10.0) -> float:
    number = float(_array(fields.get(name, default), name).reshape(()))
    if not 0 < number < math.inf:
        raise CheckpointError(f"{name} must be a finite number above 0")
    return number


def _array(saved: Any, name: str) -> NDArray[np.float64]:
    """An array or a number of the file in float64."""
    if isinstance(saved, int | float) and not isinstance(saved, bool):
        return np.array(float(saved))
    if isinstance(saved, Noted) and isinstance(saved.arguments, tuple):
        match saved.arguments, saved.state:
            case (_, (_, shape, dtype, is_fortran, data)) if saved.calls(*_ARRAY):
                return _decoded(data, dtype, shape, "F" if is_fortran is True else "C", name)
            case ((dtype, data), _) if saved.calls(*_SCALAR):
                return _decoded(data, dtype, (), "C", name)
            case ((data, dtype, shape, order), _) if saved.calls(*_BUFFER):
                return _decoded(data, dtype, shape, "F" if order == "F" else "C", name)
    raise CheckpointError(f"{name} is not an array of numbers")


def _decoded(data: Any, dtype: Any, shape: Any, order: Any, name: str) -> NDArray[np.float64]:
    kind = _dtype(dtype, name)
    is_shape = isinstance(shape, tuple) and all(type(length) is int and length >= 0 for length in shape)
    if not isinstance(data, bytes | bytearray) or not is_shape or len(shape) > _MOST_AXES:
        raise CheckpointError(f"{name} is not an array of numbers")
    if len(data) != math.prod(shape) * kind.itemsize:
        raise CheckpointError(f"{name} has {len(data)} bytes, which do not fit its shape {shape}")
    return np.frombuffer(data, kind).reshape(shape, order=order).astype(np.float64, order="C")


def _dtype(saved: Any, name: str) -> np.dtype[Any]:
    """A plain number type; numpy gets only a text that was checked."""
    if isinstance(saved, Noted) and saved.calls("numpy.dtype"):
        match saved.arguments, saved.state:
            case ((str(code), *_), (_, "<" | ">" | "|" | "=" as order, *_)) if _PLAIN.fullmatch(code):
                dtype: np.dtype[Any] = np.dtype(f"{order}{code}")
                return dtype
    raise CheckpointError(f"{name} is not an array of plain numbers")
