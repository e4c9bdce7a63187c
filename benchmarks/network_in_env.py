"""What a network inside an env would gain if a block's envs ran it together: `python -m benchmarks.network_in_env`."""

from functools import partial
from statistics import median
from timeit import repeat

import numpy as np

from surefoot.envs.network import Network

SIZES, ROWS, ROUNDS = (44, 256, 256, 18), 32, 11


def main() -> None:
    """Microseconds per row: each row in a call of its own, as envs do now, and all rows of a block in one call."""
    network, random = Network(SIZES), np.random.default_rng(1)
    network.set(0.05 * random.normal(size=network.num_values))
    block = random.normal(size=(ROWS, SIZES[0])).astype(np.float32)
    for rows in (1, ROWS):
        calls = 32 * ROWS // rows
        seconds = repeat(partial(network.run, block[:rows].copy()), number=calls, repeat=ROUNDS)
        print(f"{rows:2} rows per call: {1e6 * median(seconds) / (calls * rows):.2f} us per row")


if __name__ == "__main__":
    main()
