"""Converts an observation, single or batched, nested or flat, to the format of policies."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.core.errors import EnvError
from surefoot.core.specs import ArraySpec, ObsSpec
from surefoot.envs.protocol import ArrayTree
from surefoot.envs.protocol.spaces import SEPARATOR


def as_batch(obs: Any, spec: ObsSpec) -> tuple[ArrayTree, bool]:
    """The observation as a batch, and whether it was a single observation."""
    if isinstance(spec, ArraySpec):
        return _leaf_batch(obs, spec, "")
    flat = _flatten(obs, "")
    missing = [key for key in spec if key not in flat]
    if missing:
        raise EnvError(f"the observation has no {', '.join(missing)}; the policy was trained with {', '.join(spec)}")
    leaves = {key: _leaf_batch(flat[key], part, key) for key, part in spec.items()}
    singles = {is_single for _, is_single in leaves.values()}
    if len(singles) > 1:
        raise EnvError("some parts of the observation are batched and others are not; batch all of them or none")
    return {key: array for key, (array, _) in leaves.items()}, singles.pop()


def _flatten(obs: Any, prefix: str) -> dict[str, Any]:
    if isinstance(obs, dict):
        parts = list(obs.items())
    elif isinstance(obs, tuple):
        parts = list(enumerate(obs))
    else:
        return {prefix: obs}
    flat: dict[str, Any] = {}
    for key, part in parts:
        flat |= _flatten(part, f"{prefix}{SEPARATOR}{key}" if prefix else str(key))
    return flat


def _leaf_batch(value: Any, spec: ArraySpec, key: str) -> tuple[NDArray[Any], bool]:
    array = np.asarray(value)
    is_single = array.shape == spec.shape
    if not is_single and array.shape[1:] != spec.shape:
        name = f"observation '{key}'" if key else "observation"
        raise EnvError(f"the {name} has shape {array.shape}; the policy expects {spec.shape}, or a batch of it")
    batch = array[None] if is_single else array
    if not len(batch):
        raise EnvError("the batch of observations is empty; pass at least one")
    if spec.start:
        batch = batch - np.reshape(spec.start, spec.shape)
    return batch.astype(spec.dtype), is_single
