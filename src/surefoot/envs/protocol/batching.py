"""Converts an observation, single or batched, nested or flat, to the format of policies."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.data.specs import ArraySpec, ObsSpec
from surefoot.envs.protocol import ArrayTree
from surefoot.envs.protocol.spaces import SEPARATOR
from surefoot.errors import EnvError, NonFiniteError
from surefoot.output.failures import brief
from surefoot.output.quoted import quoted


def as_batch(obs: Any, spec: ObsSpec) -> tuple[ArrayTree, bool]:
    """The observation as a batch, and whether it was a single observation."""
    if isinstance(spec, ArraySpec):
        if isinstance(obs, tuple) and len(obs) == 2 and isinstance(obs[1], Mapping):
            raise EnvError("pass only the observation, not the whole result of reset: obs, info = env.reset()")
        return _leaf_batch(obs, spec, "")
    flat = _flatten(obs, "")
    missing = [key for key in spec if key not in flat]
    if missing:
        raise EnvError(f"the observation has no {', '.join(missing)}; the policy was trained with {', '.join(spec)}")
    leaves = {key: _leaf_batch(flat[key], leaf, key) for key, leaf in spec.items()}
    singles = {is_single for _, is_single in leaves.values()}
    if len(singles) > 1:
        raise EnvError("some components of the observation are batched and others are not; batch all of them or none")
    return {key: array for key, (array, _) in leaves.items()}, singles.pop()


def _flatten(obs: Any, prefix: str) -> dict[str, Any]:
    if isinstance(obs, Mapping):
        components = list(obs.items())
    elif isinstance(obs, tuple):
        components = list(enumerate(obs))
    else:
        return {prefix: obs}
    flat: dict[str, Any] = {}
    for key, component in components:
        inner = _flatten(component, f"{prefix}{SEPARATOR}{key}" if prefix else str(key))
        twice = flat.keys() & inner.keys()
        if twice:
            raise EnvError(f"the observation has two entries for '{min(twice)}'; pass it nested or flat, not both")
        flat |= inner
    return flat


def _leaf_batch(value: Any, spec: ArraySpec, key: str) -> tuple[NDArray[Any], bool]:
    name = f"observation '{key}'" if key else "observation"
    try:
        array = np.asarray(value)
    except Exception as error:  # lists of uneven length, tensors with a gradient, objects whose conversion fails
        raise EnvError(f"the {name} cannot be converted to an array: {brief(error)}; pass numbers") from error
    is_single = array.shape == spec.shape
    if not is_single and (not array.ndim or array.shape[1:] != spec.shape):
        raise EnvError(f"the {name} has shape {array.shape}; the policy expects {spec.shape}, or a batch of it")
    batch = array[None] if is_single else array
    if not len(batch):
        raise EnvError("the batch of observations is empty; pass at least one")
    wanted, kinds = (
        ("integers", "iu") if spec.sizes else ("uint8", "u") if spec.kind == "image" else ("numbers", "fiub")
    )
    if batch.dtype.kind not in kinds or (wanted == "uint8" and batch.dtype != np.uint8):
        raise EnvError(f"the {name} has dtype {batch.dtype}; the policy expects {wanted}")
    if spec.sizes:
        batch = batch.astype(np.int64) - np.reshape(spec.start, spec.shape)
        if (batch < 0).any() or (batch >= np.reshape(spec.sizes, spec.shape)).any():
            raise EnvError(f"the {name} {quoted(array.tolist())} is outside the space that the policy was trained with")
    with np.errstate(over="ignore"):  # becomes infinite
        batch = batch.astype(spec.dtype)
    if batch.dtype.kind == "f" and not np.isfinite(batch).all():
        raise NonFiniteError(f"the {name} contains NaN or infinity; pass finite numbers")
    return batch, is_single
