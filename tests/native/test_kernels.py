"""Learning takes the core's kernels if they are there."""

import subprocess
import sys

import pytest

from surefoot.errors import NativeError
from surefoot.native import core, kernels


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
    kernels.core_or_none.cache_clear()
    try:
        assert kernels.kernels() is None
    finally:
        kernels.core_or_none.cache_clear()


FORK = """
import os, sys, torch
from surefoot.native import kernels
from surefoot.policies.networks import MLP

def learn():
    MLP(64, (64, 64), "tanh")(torch.randn(2000, 64)).sum().backward()  # enough work for several threads

torch.set_num_threads(1)  # torch's own cannot be used in a fork
kernels.set_kernel_threads(3)
learn()
child = os.fork()
if child == 0:
    if sys.argv[1] == "learns":
        learn()
    sys.exit(0)  # not _exit: what the parent left is taken down too
print(os.waitpid(child, 0)[1])
"""


@pytest.mark.parametrize("does", ["learns", "ends"])
def test_a_fork_makes_threads_of_its_own_and_can_end(does: str) -> None:
    command = [sys.executable, "-c", FORK, does]
    assert subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout == "0\n"


def test_threads_are_as_many_as_was_said() -> None:
    try:
        kernels.set_kernel_threads(3)
        assert kernels.kernel_threads().count == 3
        assert kernels.kernel_threads() is kernels.kernel_threads()
    finally:
        kernels.set_kernel_threads(1)
    with pytest.raises(ValueError, match="count must be from 1 to 65536"):
        core().Threads(0)
