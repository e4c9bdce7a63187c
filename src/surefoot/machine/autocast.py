"""PyTorch's mixed precision, on any device."""

from contextlib import AbstractContextManager, nullcontext

import torch


def is_autocast(device: torch.device) -> bool:
    """Whether operations on a device run in lower precision here."""
    return torch.amp.is_autocast_available(device.type) and torch.is_autocast_enabled(device.type)


def autocast(device: torch.device, enabled: bool) -> AbstractContextManager[object]:
    """Matrix products and convolutions in bfloat16, or in full precision although a context outside asks for less."""
    if not enabled and not is_autocast(device):
        return nullcontext()
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=enabled)
