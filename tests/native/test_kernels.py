"""Learning takes the core's kernels if they are there."""

import pytest

from surefoot.core.errors import NativeError
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
    kernels._core.cache_clear()
    try:
        assert kernels.kernels() is None
    finally:
        kernels._core.cache_clear()
