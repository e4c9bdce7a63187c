"""Envs whose float64 numbers depend on the processor even in Gymnasium, so that no code can match every last bit."""

import math
from functools import cache

import numpy as np

CLOSE = 1e-12


@cache
def float64_tolerance(env_id: str) -> float:
    """0 for equality to the last bit, or a tolerance where numpy on this machine fuses or vectorizes operations.

    numpy chooses its code by the processor: where np.sin and np.cos of an array are vectorized, or the BLAS that
    np.linalg.norm calls fuses multiplications with additions, the last bit can differ, but nothing else.
    """
    samples = np.random.default_rng(0).normal(size=(2_000, 3))
    sines = all((np.sin(row) == [math.sin(x) for x in row]).all() for row in samples[:, :2])
    cosines = all((np.cos(row) == [math.cos(x) for x in row]).all() for row in samples[:, :2])
    norms = all(np.linalg.norm(row) == math.sqrt(x * x + y * y + z * z) for row in samples for x, y, z in [row])
    powers = all(float(x**2) == math.pow(x, 2) for x in samples[:, 0])
    exact = {
        "InvertedDoublePendulum-v5": sines and cosines and powers,
        "Reacher-v5": sines and cosines and norms,
        "Pusher-v5": norms,
    }
    return 0.0 if exact.get(env_id, True) else CLOSE
