"""Nested states, compared bit for bit."""

from typing import Any

import numpy as np
import torch


def assert_same(actual: Any, expected: Any, where: str = "state") -> None:
    """Equal in type, dtype, shape and every bit; tuples may come back as lists."""
    if isinstance(expected, dict):
        assert isinstance(actual, dict), where
        assert list(actual) == list(expected), where
        for key, part in expected.items():
            assert_same(actual[key], part, f"{where}.{key}")
    elif isinstance(expected, list | tuple):
        assert isinstance(actual, list | tuple), where
        assert len(actual) == len(expected), where
        for index, (ours, theirs) in enumerate(zip(actual, expected, strict=True)):
            assert_same(ours, theirs, f"{where}.{index}")
    elif isinstance(expected, torch.Tensor):
        assert isinstance(actual, torch.Tensor), where
        assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape), where
        assert _bits(actual) == _bits(expected), f"{where}: {actual} is not {expected}"
    elif isinstance(expected, np.ndarray | np.generic):
        assert type(actual) is type(expected), where
        assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape), where
        assert actual.tobytes() == expected.tobytes(), f"{where}: {actual} is not {expected}"
    else:
        assert type(actual) is type(expected), where
        both_nan = expected != expected and actual != actual
        assert actual == expected or both_nan, f"{where}: {actual} is not {expected}"


def _bits(tensor: torch.Tensor) -> bytes:
    return tensor.contiguous().flatten().view(torch.uint8).numpy().tobytes() if tensor.numel() else b""
