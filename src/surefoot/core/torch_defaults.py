"""PyTorch's defaults, for the duration of a call."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import torch


@contextmanager
def torch_defaults() -> Iterator[None]:
    """Compute in float32 on the CPU, with gradients, whatever the caller has set; then restore it."""
    dtype, device = torch.get_default_dtype(), torch.get_default_device()
    torch.set_default_dtype(torch.float32)
    try:
        # A device context makes every operation slower, so it is entered only if it is needed.
        on_cpu = nullcontext() if device.type == "cpu" else torch.device("cpu")
        with torch.inference_mode(False), torch.enable_grad(), on_cpu:
            yield
    finally:
        torch.set_default_dtype(dtype)
