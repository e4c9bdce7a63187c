"""Specs of observations and actions, independent of env libraries and serializable to JSON."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

Kind = Literal["box", "image", "discrete", "multi_discrete", "multi_binary", "tuple", "dict"]
_HYBRID = ("tuple", "dict")
Bound = float | tuple[float, ...]


@dataclass(frozen=True)
class ArraySpec:
    """One array: its shape and storage dtype, bounds of boxes, numbers of categories of discrete spaces.

    `low` and `high` are one number for all elements or one number per element (flattened). `start` is the value of
    category 0 of a discrete space.
    """

    kind: Kind
    shape: tuple[int, ...]
    dtype: str
    low: Bound = -math.inf
    high: Bound = math.inf
    sizes: tuple[int, ...] = ()
    start: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def is_bounded(self) -> bool:
        """Whether every element has a finite lower and upper bound."""
        return bool(np.isfinite(self.low).all() and np.isfinite(self.high).all())

    @property
    def env_dtype(self) -> str:
        """The usual dtype in an env's action."""
        return "int8" if self.kind == "multi_binary" else self.dtype

    @property
    def leaves(self) -> tuple["ArraySpec", ...]:
        """The arrays that an action consists of: itself, or the parts of a hybrid one."""
        return (self,)

    @property
    def num_choices(self) -> int:
        """Size of an action mask; 0 if the action does not support masks."""
        return sum(self.sizes) if self.sizes else self.size * (self.kind == "multi_binary")

    def bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lower and upper bounds in the array's shape."""
        return _filled(self.low, self.shape), _filled(self.high, self.shape)

    def zeros(self, *lead: int) -> NDArray[Any]:
        """A zeroed batch of such arrays."""
        return np.zeros((*lead, *self.shape), dtype=self.dtype)


@dataclass(frozen=True)
class HybridSpec(ArraySpec):
    """An action of several arrays, a Tuple or a Dict, which travels as one flat array of float32."""

    components: tuple[tuple[str, ArraySpec], ...] = ()

    @staticmethod
    def of(kind: Kind, components: Mapping[str, ArraySpec]) -> "HybridSpec":
        """From the components by key; those of a Tuple are numbered."""
        size = sum(leaf.size for leaf in components.values())
        return HybridSpec(kind, (size,), "float32", components=tuple(components.items()))

    @property
    def leaves(self) -> tuple[ArraySpec, ...]:
        return tuple(leaf for _, leaf in self.components)

    @property
    def num_choices(self) -> int:
        return sum(leaf.num_choices for leaf in self.leaves)

    def split(self, flat: NDArray[Any]) -> Any:
        """The tuple or dict of arrays of an action, or of a batch of actions."""
        edges = np.cumsum([leaf.size for leaf in self.leaves])[:-1]
        arrays = {
            key: piece.reshape((*flat.shape[:-1], *leaf.shape)).astype(leaf.env_dtype)[()]
            for (key, leaf), piece in zip(self.components, np.split(flat, edges, axis=-1), strict=True)
        }
        return arrays if self.kind == "dict" else tuple(arrays.values())


def mask_pieces(mask: Any, spec: ArraySpec) -> list[Any]:
    """The arrays of a mask, in order. It is flat, a sequence with one array per choice, or has the form of the action.

    Then None allows everything; a list is not a tuple, because a list may have one entry per row.
    """
    if isinstance(spec, HybridSpec):
        if isinstance(mask, Mapping):
            given = [mask.get(key) for key, _ in spec.components]
        elif isinstance(mask, tuple) and len(mask) == len(spec.components):
            given = list(mask)
        else:
            return [mask]
        masked = [(one, leaf) for one, leaf in zip(given, spec.leaves, strict=True) if leaf.num_choices]
        pieces = [[np.ones(leaf.num_choices, bool)] if one is None else mask_pieces(one, leaf) for one, leaf in masked]
        return [piece for several in pieces for piece in several]
    return list(mask) if isinstance(mask, tuple | list) else [mask]


def dead_rows(mask: NDArray[np.bool_], spec: ArraySpec) -> NDArray[np.bool_]:
    """Rows of a mask `[N, choices]` that forbid every option of a choice; binary actions can always be 0."""
    is_dead, first = np.zeros(len(mask), dtype=bool), 0
    for leaf in spec.leaves:
        if leaf.sizes:
            options = first + np.concatenate([[0], np.cumsum(leaf.sizes)[:-1]])
            allowed = np.logical_or.reduceat(mask[:, : first + leaf.num_choices], options, axis=1)
            is_dead |= ~allowed.all(axis=1)
        first += leaf.num_choices
    return is_dead


_FIELDS = tuple(field.name for field in fields(ArraySpec))
_DTYPES = frozenset(f"{kind}{bits}" for kind in ("int", "uint", "float") for bits in (8, 16, 32, 64)) - {"float8"} | {
    "bool"
}
MOST_ELEMENTS = 2**26
"""Maximum number of elements or categories of an array, of an env or in a file."""
_MOST_AXES = 16
_FARTHEST = 2**63 - 1
"""Of the first category from 0."""

ObsSpec = ArraySpec | dict[str, ArraySpec]


def _filled(bound: Bound, shape: tuple[int, ...]) -> NDArray[np.float64]:
    values = np.asarray(bound, dtype=np.float64)
    return np.full(shape, values) if values.ndim == 0 else values.reshape(shape)


def spec_to_json(spec: ObsSpec) -> dict[str, Any]:
    """The spec as JSON; infinities become strings that `float` can parse."""
    if isinstance(spec, HybridSpec):
        return {"kind": spec.kind, **spec_to_json(dict(spec.components))}
    if isinstance(spec, dict):
        return {"keys": {key: spec_to_json(leaf) for key, leaf in spec.items()}}
    plain = asdict(spec)
    for name in ("low", "high"):
        bound = plain[name]
        plain[name] = [str(b) for b in bound] if isinstance(bound, tuple) else str(bound)
    return plain


def spec_from_json(plain: Mapping[str, Any]) -> ObsSpec:
    """Inverse of `spec_to_json`; a ValueError says what is wrong with it."""
    if not isinstance(plain, Mapping):
        raise ValueError("a spec must be a dict")
    if "keys" in plain:
        if not isinstance(plain["keys"], Mapping):
            raise ValueError("'keys' must be a dict of specs")
        components = {str(key): _array_spec(leaf) for key, leaf in plain["keys"].items()}
        return components if "kind" not in plain else _hybrid_spec(plain["kind"], components)
    return _array_spec(plain)


def _hybrid_spec(kind: Any, components: dict[str, ArraySpec]) -> HybridSpec:
    if kind not in _HYBRID or not components or any(leaf.kind == "image" for leaf in components.values()):
        raise ValueError(f"kind {kind!r:.40} is not a tuple or dict of actions")
    return HybridSpec.of(kind, components)


def _array_spec(plain: Any) -> ArraySpec:
    missing = [name for name in _FIELDS if not isinstance(plain, Mapping) or name not in plain]
    if missing:
        raise ValueError(f"it has no {', '.join(missing)}")
    shape, sizes, start = (
        _whole_numbers(plain, name, *within)
        for name, within in (
            ("shape", (0, MOST_ELEMENTS)),
            ("sizes", (1, MOST_ELEMENTS)),
            ("start", (-_FARTHEST, _FARTHEST)),
        )
    )
    if plain["kind"] not in set(get_args(Kind)) - set(_HYBRID) or str(plain["dtype"]) not in _DTYPES:
        raise ValueError(f"kind {plain['kind']!r:.40} or dtype {plain['dtype']!r:.40} is unknown")
    size = math.prod(shape)
    is_discrete = plain["kind"] in ("discrete", "multi_discrete")
    if max(size, sum(sizes)) > MOST_ELEMENTS or len(start) not in (0, len(sizes)) or len(sizes) != size * is_discrete:
        raise ValueError(f"shape {list(shape)!s:.60} and the numbers of categories do not fit together")
    low, high = (_bound(plain[name], size) for name in ("low", "high"))
    return ArraySpec(plain["kind"], shape, plain["dtype"], low, high, sizes, start)


def _whole_numbers(plain: Mapping[str, Any], name: str, least: int, most: int) -> tuple[int, ...]:
    values = plain[name]
    if (
        not isinstance(values, list | tuple)
        or (name == "shape" and len(values) > _MOST_AXES)
        or not all(type(one) is int and least <= one <= most for one in values)
    ):
        raise ValueError(f"'{name}' must be a list of whole numbers")
    return tuple(values)


def _bound(value: Any, size: int) -> Bound:
    numbers = tuple(float(one) for one in value) if isinstance(value, list | tuple) else float(value)
    if np.isnan(numbers).any() or np.size(numbers) not in (1, size):
        raise ValueError(f"bounds must be one number or {size}, and not NaN")
    return numbers
