"""Specs of observations and actions, independent of env libraries and serializable to JSON."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

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
    """Inverse of `spec_to_json`."""
    if "keys" in plain:
        parts = {key: spec_from_json(part) for key, part in plain["keys"].items()}
        return {key: part for key, part in parts.items() if isinstance(part, ArraySpec)}

    def bound(value: Any) -> Bound:
        return tuple(float(v) for v in value) if isinstance(value, list) else float(value)

    return ArraySpec(
        kind=plain["kind"],
        shape=tuple(plain["shape"]),
        dtype=plain["dtype"],
        low=bound(plain["low"]),
        high=bound(plain["high"]),
        sizes=tuple(plain["sizes"]),
        start=tuple(plain["start"]),
    )
