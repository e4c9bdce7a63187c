"""What all tests share."""

import torch


def pytest_configure() -> None:
    """One torch thread a process: on a busy machine small networks lose twentyfold to threads that wait for another."""
    torch.set_num_threads(1)
