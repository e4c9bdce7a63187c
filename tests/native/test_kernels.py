"""Learning takes the core's kernels if they are there."""

import os

import pytest
import torch

from surefoot.core.errors import NativeError
from surefoot.native import core, kernels
from surefoot.policies.networks import MLP


def test_they_are_there_and_can_be_left_out() -> None:
    assert kernels.kernels() is core()
    with kernels.readable_only():
        assert kernels.kernels() is None
        with kernels.readable_only():
            assert kernels.kernels() is None
        assert kernels.kernels() is None
    assert kernels.kernels() is core()


def test_without_a_core_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise NativeError("not there")

    monkeypatch.setattr(kernels, "core", missing)
    kernels._core.cache_clear()
    try:
        assert kernels.kernels() is None
    finally:
        kernels._core.cache_clear()


def test_threads_are_as_many_as_was_said_and_a_fork_makes_its_own() -> None:
    try:
        kernels.set_kernel_threads(3)
        assert kernels.kernel_threads().count == 3
        assert kernels.kernel_threads() is kernels.kernel_threads()
        child = os.fork()
        if child == 0:
            os._exit(0 if kernels.kernel_threads().count == 3 and _learns() else 1)
        assert os.waitpid(child, 0)[1] == 0
    finally:
        kernels.set_kernel_threads(1)
    with pytest.raises(ValueError, match="count must be at least 1"):
        core().Threads(0)


def _learns() -> bool:
    """Enough work for several threads; those of the parent are not there."""
    module, features = MLP(64, (64, 64), "tanh"), torch.randn(2000, 64)
    module(features).sum().backward()
    return True
