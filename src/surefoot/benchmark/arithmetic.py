"""The arithmetic of a minibatch, counted from the sizes of the layers, and the rate at which the machine does it."""

import time
from dataclasses import dataclass
from itertools import pairwise

import torch

OBS_SIZE, ACTION_SIZE, VALUE_SIZE = 17, 6, 1
"""As in HalfCheetah-v5."""
SEQUENCE_LENGTH = 32
GRU_GATES = 3
PRODUCT_SIZE = 1024
"""Rows and columns of the matrices whose product is the machine's rate."""


@dataclass(frozen=True)
class Network:
    """Actor and critic are separate networks of this shape."""

    name: str
    hidden: tuple[int, ...]
    gru: int = 0
    """Units of a GRU before the hidden layers; 0 means none."""

    def multiply_adds(self, samples: int) -> float:
        """Forward, gradient of the weights, and gradient of the inputs, of both networks."""
        return samples * sum(self._per_sample(outputs) for outputs in (ACTION_SIZE, VALUE_SIZE))

    def _per_sample(self, outputs: int) -> float:
        sizes = [self.gru or OBS_SIZE, *self.hidden, outputs]
        layers = [inputs * size for inputs, size in pairwise(sizes)]
        if not self.gru:  # observations need no gradient
            return 2 * layers[0] + 3 * sum(layers[1:])
        # The state before a sequence needs no gradient either.
        recurrent = (2 + (SEQUENCE_LENGTH - 1) / SEQUENCE_LENGTH) * self.gru
        return (2 * OBS_SIZE + recurrent) * GRU_GATES * self.gru + 3 * sum(layers)


NETWORKS = {
    network.name: network
    for network in (
        Network("64-64", (64, 64)),
        Network("256-256", (256, 256)),
        Network("3x512", (512, 512, 512)),
        Network("gru-256", (64,), gru=256),
    )
}


def product_rate(seconds: float) -> float:
    """Multiply-adds per second of PyTorch's float32 matrix product, with its current number of threads."""
    left, right = torch.rand(PRODUCT_SIZE, PRODUCT_SIZE), torch.rand(PRODUCT_SIZE, PRODUCT_SIZE)
    out = torch.mm(left, right)
    began, count = time.perf_counter(), 0
    while (taken_s := time.perf_counter() - began) < seconds or not count:
        torch.mm(left, right, out=out)
        count += 1
    return float(count * PRODUCT_SIZE**3 / taken_s)
