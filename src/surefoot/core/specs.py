"""Specs of observations and actions, independent of env libraries and serializable to JSON."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

Kind = Literal["box", "image", "discrete", "multi_discrete", "multi_binary"]
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

    def bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lower and upper bounds in the array's shape."""
        return _filled(self.low, self.shape), _filled(self.high, self.shape)

    def zeros(self, *lead: int) -> NDArray[Any]:
        """A zeroed batch of such arrays."""
        return np.zeros((*lead, *self.shape), dtype=self.dtype)


_FIELDS = tuple(field.name for field in fields(ArraySpec))
_DTYPES = frozenset(f"{kind}{bits}" for kind in ("int", "uint", "float") for bits in (8, 16, 32, 64)) - {"float8"} | {
    "bool"
}
_MOST = 2**26
"""Maximum number of elements or categories of an array that a file describes."""

_MOST_AXES = 16

ObsSpec = ArraySpec | dict[str, ArraySpec]


def _filled(bound: Bound, shape: tuple[int, ...]) -> NDArray[np.float64]:
    values = np.asarray(bound, dtype=np.float64)
    return np.full(shape, values) if values.ndim == 0 else values.reshape(shape)


def spec_to_json(spec: ObsSpec) -> dict[str, Any]:
    """The spec as JSON; infinities become strings that `float` can parse."""
    if isinstance(spec, dict):
        return {"keys": {key: spec_to_json(part) for key, part in spec.items()}}
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
        return {str(key): _array_spec(part) for key, part in plain["keys"].items()}
    return _array_spec(plain)


def _array_spec(plain: Any) -> ArraySpec:
    missing = [name for name in _FIELDS if not isinstance(plain, Mapping) or name not in plain]
    if missing:
        raise ValueError(f"it has no {', '.join(missing)}")
    shape, sizes, start = (
        _whole_numbers(plain, name, least) for name, least in (("shape", 0), ("sizes", 1), ("start", -_MOST))
    )
    if plain["kind"] not in get_args(Kind) or str(plain["dtype"]) not in _DTYPES:
        raise ValueError(f"kind {plain['kind']!r:.40} or dtype {plain['dtype']!r:.40} is unknown")
    size = math.prod(shape)
    is_discrete = plain["kind"] in ("discrete", "multi_discrete")
    if max(size, sum(sizes)) > _MOST or len(start) not in (0, len(sizes)) or len(sizes) != size * is_discrete:
        raise ValueError(f"shape {list(shape)!s:.60} and the numbers of categories do not fit together")
    low, high = (_bound(plain[name], size) for name in ("low", "high"))
    return ArraySpec(plain["kind"], shape, plain["dtype"], low, high, sizes, start)


def _whole_numbers(plain: Mapping[str, Any], name: str, least: int) -> tuple[int, ...]:
    values = plain[name]
    if (
        not isinstance(values, list | tuple)
        or (name == "shape" and len(values) > _MOST_AXES)
        or not all(type(one) is int and least <= one <= _MOST for one in values)
    ):
        raise ValueError(f"'{name}' must be a list of whole numbers")
    return tuple(values)


def _bound(value: Any, size: int) -> Bound:
    numbers = tuple(float(one) for one in value) if isinstance(value, list | tuple) else float(value)
    if np.isnan(numbers).any() or np.size(numbers) not in (1, size):
        raise ValueError(f"bounds must be one number or {size}, and not NaN")
    return numbers
