"""Values that nobody means: for numbers, arrays, names and whole JSON trees."""

import math
import random
from typing import Any

import numpy as np

NUMBERS: tuple[Any, ...] = (
    *(0, 1, -1, 2, 3, 7, 0.5, -0.0, 1e-320, 1e-30, 1e17, 1e300, -1e300, 10**400, -(10**30), 2**63, -(2**63) - 1),
    *(math.nan, math.inf, -math.inf, True, False),
)
OTHERS: tuple[Any, ...] = (
    None,
    "",
    "x",
    "1",
    "nan",
    "\x00",
    "\x1b]0;x\x07\x1b[2J",
    "é" * 3,
    b"bytes",
    [],
    {},
    (),
    [[]],
    [1, 2],
    {"a": 1},
    {1: 2},
)
ANY = (*NUMBERS, *OTHERS)


class BadArray:
    """Numpy asks it for an array in vain."""

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("no array")

    def __float__(self) -> float:
        raise RuntimeError("no number")

    def __len__(self) -> int:
        raise RuntimeError("no length")

    def __bool__(self) -> bool:
        raise RuntimeError("neither true nor false")

    def __repr__(self) -> str:
        raise RuntimeError("nothing to show")


def odd_array(pick: random.Random, shape: tuple[int, ...]) -> Any:
    """Something in place of an array of a shape: another shape, another dtype, bad numbers, or no array."""
    other = pick.choice(
        [(), (0,), (1,), (2,), (3, 3), (*shape, 1), (1, *shape), shape[:-1], tuple(n + 1 for n in shape)]
    )
    numbers = np.zeros(shape)
    if numbers.size:
        numbers.flat[pick.randrange(numbers.size)] = pick.choice([math.nan, math.inf, -math.inf, 1e300, -5.0, 0.5])
    return pick.choice(
        [
            np.zeros(other),
            numbers,
            np.full(shape, "x"),
            np.zeros(shape, dtype=object),
            np.zeros(shape, dtype=complex),
            np.zeros(shape, dtype=bool),
            np.full(shape, 2**40),
            numbers.tolist(),
            [[1.0], [1.0, 2.0]],
            BadArray(),
            pick.choice(ANY),
        ]
    )


def mutated(pick: random.Random, data: bytes) -> bytes:
    """Damaged bytes: flipped, cut, doubled, swapped, overwritten."""
    damaged = bytearray(data)
    for _ in range(pick.choice([1, 1, 1, 2, 5, 50])):
        at = pick.randrange(max(1, len(damaged)))
        length = pick.choice([1, 1, 2, 8, 100, 5000])
        match pick.randrange(6):
            case 0 if damaged:
                damaged[at] ^= 1 << pick.randrange(8)
            case 1:
                del damaged[at:]
            case 2:
                del damaged[at : at + length]
            case 3:
                damaged[at:at] = damaged[at : at + length]
            case 4:
                damaged[at : at + length] = pick.randbytes(length)
            case _:
                damaged[at : at + length] = bytes([pick.choice([0, 255, 34, 48, 123])]) * length
    return bytes(damaged)
