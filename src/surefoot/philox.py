"""Counter-based randomness (Philox4x32-10): a number depends on where it is used, not on earlier draws.

Key = the seed's two halves, counter = (draw, step, row, stream). So results do not depend on the number of threads or
workers, row i's stream does not depend on how many rows there are, and there is no generator state to save.
Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3".
"""

import enum
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)

Words = NDArray[np.uint64]


class Stream(enum.IntEnum):
    """The purpose of a random number: the last word of the counter separates the streams."""

    ACTION = 0
    ENV_SEED = 1
    SHUFFLE = 2
    WEIGHTS = 3
    EVALUATION = 4
    BOOTSTRAP = 5
    PREDICTION = 6
    ATTACK = 7
    ATTACKED = 8
    POPULATION = 9
    POPULATION_EVALUATION = 10


def philox(counter: Sequence[ArrayLike], key: tuple[int, int]) -> tuple[Words, Words, Words, Words]:
    """Ten rounds over a broadcastable counter of four 32-bit words; the words are held in uint64."""
    c0, c1, c2, c3 = np.broadcast_arrays(*(np.asarray(word, dtype=np.uint64) for word in counter))
    k0, k1 = key
    for _ in range(_ROUNDS):
        product0, product1 = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0, c1, c2, c3 = (
            (product1 >> _HALF) ^ c1 ^ np.uint64(k0),
            product1 & _LOW,
            (product0 >> _HALF) ^ c3 ^ np.uint64(k1),
            product0 & _LOW,
        )
        k0, k1 = (k0 + _WEYL[0]) & 0xFFFFFFFF, (k1 + _WEYL[1]) & 0xFFFFFFFF
    return c0, c1, c2, c3


def words(seed: int, steps: ArrayLike, rows: ArrayLike, count: int, stream: Stream) -> Words:
    """32-bit words `[steps, rows, count]`; word j of a (step, row) is word j % 4 of draw j // 4."""
    num_draws = -(-count // 4)
    counter = (
        np.arange(num_draws)[None, None, :],
        (np.asarray(steps, dtype=np.int64) & 0xFFFFFFFF)[:, None, None],
        np.asarray(rows, dtype=np.int64)[None, :, None],
        int(stream),
    )
    drawn = np.stack(philox(counter, (seed & 0xFFFFFFFF, (seed >> 32) & 0xFFFFFFFF)), axis=-1)
    return drawn.reshape(*drawn.shape[:2], 4 * num_draws)[..., :count]


def uniforms(seed: int, steps: ArrayLike, rows: ArrayLike, count: int, stream: Stream) -> NDArray[np.float32]:
    """Uniforms in [0, 1) with 24 bits, exact in float32: `[steps, rows, count]`."""
    top24 = words(seed, steps, rows, count, stream) >> np.uint64(8)
    return (top24.astype(np.float64) * 2.0**-24).astype(np.float32)


def permutations(seed: int, update: int, count: int, size: int) -> NDArray[np.int64]:
    """`count` permutations of range(size) for one update: the argsort of random words."""
    keys = words(seed, [update], np.arange(count), size, Stream.SHUFFLE)[0]
    return np.argsort(keys, axis=-1, kind="stable")


def derived_seed(seed: int, row: int, stream: Stream, step: int = 0) -> int:
    """A 31-bit seed for a component with its own generator, such as a Gymnasium env."""
    return int(words(seed, [step], [row], 1, stream)[0, 0, 0]) & 0x7FFFFFFF
