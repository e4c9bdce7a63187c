"""Reads flags and masks that users hand over: booleans, or numbers that are all 0 or 1."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

MASK_RULE = "masks are booleans or 0 and 1, where 1 = allowed; additive masks are not supported"
"""The end of every message about a mask."""


def zeros_and_ones(value: Any, kinds: str = "iuf") -> NDArray[np.bool_] | None:
    """The value as booleans; None if it is anything else, such as an additive mask. `kinds` of numbers are read."""
    try:
        array = np.asarray(value)
        if array.dtype == bool:
            return array
        is_flags = not array.size or (array.dtype.kind in kinds and bool(((array == 0) | (array == 1)).all()))
    except Exception:  # lists of uneven length, objects whose conversion fails
        return None
    return array.astype(bool) if is_flags else None
