"""PyTorch's defaults, number of threads and precision, for the duration of a call."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

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
        if torch.get_default_device() != device:
            _set_device(device)


def restore_defaults() -> None:
    """Undo what code of others, such as an env or a hook, has set for the whole process."""
    new = torch.empty(0)  # tells both, in a fraction of the time of `torch.get_default_device`
    if new.dtype is not torch.float32:
        torch.set_default_dtype(torch.float32)
    if new.device.type != "cpu":
        _set_device(torch.device("cpu"))


def _set_device(device: torch.device) -> None:
    torch.set_default_device(None if device.type == "cpu" else device)


def is_autocast(device: torch.device) -> bool:
    """Whether operations on a device run in lower precision here."""
    return torch.amp.is_autocast_available(device.type) and torch.is_autocast_enabled(device.type)


def autocast(device: torch.device, enabled: bool) -> AbstractContextManager[object]:
    """Matrix products and convolutions in bfloat16, or in full precision although a context outside asks for less."""
    if not enabled and not is_autocast(device):
        return nullcontext()
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=enabled)


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Use so many threads inside the context, then restore the previous number."""
    before = torch.get_num_threads()
    if before != count:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        if before != count:
            torch.set_num_threads(before)
