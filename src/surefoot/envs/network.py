"""A network inside an environment, with the same bits as in C++ (`surefoot/network.hpp`), for twins of native envs."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.errors import ConfigError
from surefoot.native import core
from surefoot.output.quoted import quoted


class Network:
    """Linear layers with an activation between them, in float32, on the kernels that native policies run on.

    `sizes` are those of inputs, hidden layers and outputs. Activations are named as in `policy.activation`.
    """

    def __init__(self, sizes: Sequence[int], activation: str = "tanh", output: str = "identity") -> None:
        try:
            self._core = core().Network(list(sizes), activation, output)
        except (TypeError, ValueError) as error:
            raise ConfigError([f"network of sizes {list(sizes)}: {error}"]) from error
        self._outputs = sizes[-1]

    @property
    def num_values(self) -> int:
        """Number of all weights `[out, in]` and biases `[out]`, layer by layer, as `parameters_to_vector` has them."""
        return self._core.num_values

    def set(self, values: Any) -> None:
        """Set all weights and biases, rounded to float32; another number of them, and NaN, is refused."""
        flat = np.ascontiguousarray(np.asarray(values, dtype=np.float64).ravel())
        try:
            self._core.set(flat)
        except ValueError as error:
            raise ConfigError([f"network: cannot set {quoted(values)}: {error}"]) from error

    def run(self, inputs: Any) -> NDArray[np.float32]:
        """Outputs `[..., out]` of inputs `[..., in]`; each row depends only on its own inputs."""
        given = np.ascontiguousarray(inputs, dtype=np.float32)
        rows = given.reshape(-1, given.shape[-1])
        outputs = np.empty((len(rows), self._outputs), np.float32)
        try:
            self._core.run(len(rows), rows, outputs)
        except ValueError as error:
            raise ConfigError([f"network: {error}"]) from error
        return outputs.reshape(*given.shape[:-1], self._outputs)
