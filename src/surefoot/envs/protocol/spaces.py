"""Converts Gymnasium spaces to specs, and observations to flat arrays."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from surefoot.data.specs import MOST_ELEMENTS, ArraySpec, Bound, HybridSpec, ObsSpec
from surefoot.data.tree import tree_items
from surefoot.envs.protocol import ArrayTree, Flags
from surefoot.errors import EnvError
from surefoot.output.failures import brief
from surefoot.output.quoted import quoted

SEPARATOR = "/"
"""Between the levels of nested Dict and Tuple spaces: {"arm": {"joint": ...}} has the key "arm/joint"."""


_MOST_CHOICES = 2**24
"""In a Tuple or Dict of actions, which travels in float32."""

LEARNABLE = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)
"""Spaces of numbers in arrays of a fixed shape. A policy cannot learn from others, such as Text."""


def obs_spec(space: spaces.Space[Any]) -> ObsSpec:
    """The spec of an observation space; Dict and Tuple become one flat dict, without unlearnable keys."""
    if isinstance(space, spaces.Dict | spaces.Tuple):
        leaves = _leaves(space)
        _refuse_equal_keys(leaves, space)
        return {leaf.key: array_spec(leaf.space, "observation") for leaf in _learnable(leaves)}
    return array_spec(space, "observation")


def left_out(space: spaces.Space[Any]) -> tuple[str, ...]:
    """The keys of a Dict or Tuple space that a policy cannot learn from, each with its kind: "mission (Text)"."""
    return tuple(
        f"{leaf.key} ({type(leaf.space).__name__})"
        for leaf in _leaves(space)
        if leaf.path and not isinstance(leaf.space, LEARNABLE)
    )


def action_spec(space: spaces.Space[Any]) -> ArraySpec:
    """The spec of an action space; a Tuple or Dict of arrays becomes one flat array."""
    if not isinstance(space, spaces.Dict | spaces.Tuple):
        return array_spec(space, "action")
    leaves = _leaves(space)
    if not leaves or any(len(leaf.path) != 1 for leaf in leaves):
        problem = "is not supported; a Tuple or Dict of actions must not be empty or nested"
        raise EnvError(f"action space {quoted(space)} {problem}")
    components = {leaf.key: array_spec(leaf.space, "action") for leaf in leaves}
    for key, leaf in components.items():
        if any(abs(first) + size > _MOST_CHOICES for first, size in zip(leaf.start, leaf.sizes, strict=True)):
            raise EnvError(
                f"the component '{key}' of action space {quoted(space)} has choices beyond {_MOST_CHOICES:,}; hybrid"
                " actions are float32, which holds no larger whole numbers exactly: count from a smaller start"
            )
    return HybridSpec.of("dict" if isinstance(space, spaces.Dict) else "tuple", components)


class EnvActions:
    """Converts actions `[N, ...]` of a policy to what envs take: the dtypes of the space, and its Tuple or Dict."""

    def __init__(self, space: spaces.Space[Any]) -> None:
        self.spec, self._space = action_spec(space), space

    def batch(self, actions: NDArray[Any]) -> Any:
        """As a vector env takes them."""
        if not isinstance(self.spec, HybridSpec):
            return actions.astype(self._space.dtype, copy=False)
        leaves = self.spec.split(actions)
        if isinstance(leaves, dict):
            return {key: leaf.astype(self._space[key].dtype, copy=False) for key, leaf in leaves.items()}  # type: ignore[index]
        return tuple(leaf.astype(one.dtype, copy=False) for leaf, one in zip(leaves, self._space, strict=True))  # type: ignore[call-overload]

    def rows(self, actions: NDArray[Any]) -> Sequence[Any]:
        """One action per row."""
        batch = self.batch(actions)
        if isinstance(batch, dict):
            return [dict(zip(batch, row, strict=True)) for row in zip(*batch.values(), strict=True)]
        return list(zip(*batch, strict=True)) if isinstance(batch, tuple) else batch


def array_spec(space: spaces.Space[Any], role: str) -> ArraySpec:
    """The spec of a single array."""
    _refuse_huge(space, role)
    spec = _array_spec(space, role)
    low, high = spec.bounds()
    if not spec.size:
        raise EnvError(f"{role} space {quoted(space)} has no elements; it needs at least one")
    if not (low <= high).all() or min(spec.sizes, default=1) < 1:  # changed after Gymnasium checked them
        raise EnvError(f"{role} space {quoted(space)} has NaN bounds or is empty; low must not exceed high")
    return spec


def _refuse_huge(space: spaces.Space[Any], role: str) -> None:
    """Before the first array of its size is made."""
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
        elements = int(np.sum(space.nvec if isinstance(space, spaces.MultiDiscrete) else space.n))
    else:
        elements = math.prod(space.shape or ())
    if elements > MOST_ELEMENTS:
        raise EnvError(
            f"{role} space {quoted(space)} has {elements:,} elements or categories, more than the {MOST_ELEMENTS:,}"
            " that are supported; wrap the env so that it has fewer (gymnasium.wrappers.ResizeObservation for images)"
        )


def _array_spec(space: spaces.Space[Any], role: str) -> ArraySpec:
    if isinstance(space, spaces.Box):
        is_image = role == "observation" and space.dtype == np.uint8 and len(space.shape) in (2, 3)
        dtype = "uint8" if is_image else "float32"
        low, high = _bound(space.low), _bound(space.high)
        return ArraySpec("image" if is_image else "box", space.shape, dtype, low, high)
    if isinstance(space, spaces.Discrete):
        return ArraySpec("discrete", (), "int64", sizes=(int(space.n),), start=(int(space.start),))
    if isinstance(space, spaces.MultiDiscrete):
        sizes = tuple(int(n) for n in space.nvec.ravel())
        start = tuple(int(n) for n in np.asarray(space.start).ravel())
        return ArraySpec("multi_discrete", space.nvec.shape, "int64", sizes=sizes, start=start)
    if isinstance(space, spaces.MultiBinary):
        return ArraySpec("multi_binary", tuple(space.shape), "float32", low=0.0, high=1.0)
    kinds = "Box, Discrete, MultiDiscrete or MultiBinary"
    if role == "observation":
        raise EnvError(
            f"observation space {quoted(space)} is not supported; wrap the env in a gymnasium.ObservationWrapper that"
            f" returns {kinds}, or a Dict or Tuple of them"
        )
    raise EnvError(f"{role} space {space} is not supported; use {kinds}, or a Tuple or Dict of them")


class ObsWriter:
    """Copies the observation of one env into row i of a batch, and checks its shape and dtype."""

    def __init__(self, space: spaces.Space[Any]) -> None:
        self.spec, self.left_out = obs_spec(space), left_out(space)
        leaves = _learnable(_leaves(space)) if isinstance(self.spec, dict) else [Leaf("", (), space)]
        self._leaves = {leaf.key: leaf for leaf in leaves}

    def write(self, obs: Any, target: ArrayTree, row: int, who: Callable[[int], str]) -> None:
        """Copy the env's arrays, which the env may reuse."""
        if isinstance(self.spec, ArraySpec):
            assert isinstance(target, np.ndarray)
            is_plain = type(obs) is np.ndarray and obs.dtype == target.dtype and obs.shape == self.spec.shape
            # The common case needs no further check.
            target[row] = obs if is_plain and not self.spec.sizes else _checked(obs, self.spec, "", row, who)
            return
        assert isinstance(target, dict)
        for key, leaf in self._leaves.items():
            try:
                value = leaf.read(obs)
            except Exception as error:  # also what an object of the env raises
                raise EnvError(
                    f"{who(row)} returned an observation without '{key}' ({brief(error)}); add it or remove it from"
                    " observation_space"
                ) from error
            target[key][row] = _checked(value, self.spec[key], key, row, who)

    def write_batch(self, obs: Any, target: ArrayTree, rows: Flags | slice = slice(None)) -> bool:
        """Copy rows of a batched observation at once; returns False if a part of it does not fit its space."""
        found = []
        for key, leaf in tree_items(target):
            try:
                batch = self._leaves[key].read(obs)
            except Exception:  # row by row, the error is named
                return False
            spec = self.spec if isinstance(self.spec, ArraySpec) else self.spec[key]
            if not _is_batch(batch, spec, len(leaf)):
                return False
            found.append((leaf, batch - np.reshape(spec.start, spec.shape) if spec.sizes else batch))
        for leaf, batch in found:
            leaf[rows] = batch[rows]
        return True


def _is_batch(batch: Any, spec: ArraySpec, count: int) -> bool:
    """The checks of `_checked`, for a whole batch."""
    if not isinstance(batch, np.ndarray) or batch.shape != (count, *spec.shape):
        return False
    if spec.sizes:
        low = np.reshape(spec.start, spec.shape)
        high = low + np.reshape(spec.sizes, spec.shape)
        return batch.dtype.kind in "iu" and bool(((batch >= low) & (batch < high)).all())
    return batch.dtype == np.uint8 if spec.kind == "image" else batch.dtype.kind in "fiub"


def _checked(value: Any, spec: ArraySpec, key: str, row: int, who: Callable[[int], str]) -> NDArray[Any] | int:
    name = f"observation '{key}'" if key else "observation"
    try:
        if isinstance(value, Sequence) and not isinstance(value, str) and len(value) > max(spec.shape, default=0):
            value = np.broadcast_to(0, len(value))  # of its shape: a range of 10**12 does not fit into memory
        array = value if isinstance(value, np.ndarray) else np.asarray(value)
    except Exception as error:  # lists of uneven length, objects whose conversion fails
        raise EnvError(f"{who(row)} returned an {name} that cannot be converted to an array: {brief(error)}") from error
    if array.shape != spec.shape:
        raise EnvError(f"{who(row)} returned an {name} of shape {array.shape}; its space has shape {spec.shape}")
    if spec.sizes:
        return _categories(array, spec, name, row, who)
    if array.dtype.kind not in "fiub" or (spec.kind == "image" and array.dtype != np.uint8):
        raise EnvError(f"{who(row)} returned an {name} of dtype {array.dtype}; its space has dtype {spec.dtype}")
    return array


def _categories(array: NDArray[Any], spec: ArraySpec, name: str, row: int, who: Callable[[int], str]) -> NDArray[Any]:
    if array.dtype.kind not in "iu":
        raise EnvError(f"{who(row)} returned an {name} of dtype {array.dtype}; its space requires integers")
    shifted = array - np.reshape(spec.start, spec.shape)
    if (shifted < 0).any() or (shifted >= np.reshape(spec.sizes, spec.shape)).any():
        raise EnvError(f"{who(row)} returned the {name} {quoted(array.tolist())}, which its space does not contain")
    return np.asarray(shifted)


class Leaf(NamedTuple):
    """An array of a nested space: its flat key, and its keys from the outside in."""

    key: str
    path: tuple[Any, ...]
    space: spaces.Space[Any]

    def read(self, obs: Any) -> Any:
        """This array of an observation."""
        for key in self.path:
            obs = obs[key]
        return obs


def _leaves(space: spaces.Space[Any], path: tuple[Any, ...] = ()) -> list[Leaf]:
    if isinstance(space, spaces.Dict):
        components: list[tuple[Any, spaces.Space[Any]]] = list(space.spaces.items())
    elif isinstance(space, spaces.Tuple):
        components = list(enumerate(space.spaces))
    else:
        return [Leaf(SEPARATOR.join(map(str, path)), path, space)]
    return [leaf for key, inner in components for leaf in _leaves(inner, (*path, key))]


def _learnable(leaves: Sequence[Leaf]) -> list[Leaf]:
    found = [leaf for leaf in leaves if isinstance(leaf.space, LEARNABLE)]
    if not found:
        kinds = ", ".join(sorted({type(leaf.space).__name__ for leaf in leaves}))
        raise EnvError(
            f"the observation space has only keys that a policy cannot learn from ({kinds}); wrap the env in a"
            " gymnasium.ObservationWrapper that converts them to arrays of numbers"
        )
    return found


def _refuse_equal_keys(leaves: Sequence[Leaf], space: spaces.Space[Any]) -> None:
    """Refuse leaves that would become one: keys are joined by "/", and modules of policies replace "." by it."""
    if not leaves:
        raise EnvError(f"observation space {quoted(space)} has no elements; it needs at least one")
    seen: dict[str, Leaf] = {}
    for leaf in leaves:
        if not all(map(str, leaf.path)):
            raise EnvError(f"observation space {quoted(space)} has an empty key; rename it")
        other = seen.setdefault(leaf.key.replace(".", SEPARATOR), leaf)
        if other is not leaf:
            raise EnvError(
                f"the keys {_spelled(other)} and {_spelled(leaf)} of the observation space are both"
                f" '{leaf.key}' when flattened; rename one of them"
            )


def _spelled(leaf: Leaf) -> str:
    return "".join(f"[{quoted(key)}]" for key in leaf.path)


def _bound(values: NDArray[Any]) -> Bound:
    flat = values.astype(np.float64).ravel()
    if flat.size and (flat == flat[0]).all():
        return float(flat[0])
    return tuple(float(value) for value in flat)
