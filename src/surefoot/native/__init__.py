"""Loads the compiled core, and first the MuJoCo library that it depends on."""

import ctypes
import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from surefoot.errors import InstructionsError, NativeError

if TYPE_CHECKING:
    from surefoot.native import _core

    # Types for annotations; `core()` returns the real ones.
    Engine = _core.Engine
    NonFinite = _core.NonFinite
    Policy = _core.Policy
    RolloutResult = _core.RolloutResult
    Network = _core.Network
    Threads = _core.Threads

Array = NDArray[np.float32]
Arrays = dict[str, NDArray[Any]]
"""Arrays by name, for functions with many inputs and outputs."""


class Core(Protocol):
    """The compiled module; mypy compares it with the stub."""

    @property
    def __file__(self) -> str | None: ...

    @property
    def Engine(self) -> "type[_core.Engine]": ...  # noqa: N802
    @property
    def Policy(self) -> "type[_core.Policy]": ...  # noqa: N802
    def env_ids(self) -> Sequence[str]: ...
    def library_envs(self, library: str) -> Sequence[tuple[str, int]]: ...
    def footprint(
        self, env_id: str, options: Mapping[str, bool | float | str | Sequence[float]], library: str = ""
    ) -> tuple[int, int]: ...
    def merged_moments(
        self,
        counts: NDArray[np.float64],
        means: NDArray[np.float64],
        variances: NDArray[np.float64],
        num_rows: int,
        size: int,
    ) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]: ...
    def mujoco_versions(self) -> tuple[int, int]: ...
    def instructions(self) -> str: ...
    def instruction_sets(self) -> Sequence[str]: ...
    def part_kinds(self) -> dict[str, list[str]]: ...
    @property
    def Network(self) -> "type[_core.Network]": ...  # noqa: N802
    @property
    def Threads(self) -> "type[_core.Threads]": ...  # noqa: N802
    def lstm_forward(self, arrays: Arrays, threads: "_core.Threads") -> None: ...
    def lstm_backward(self, arrays: Arrays, threads: "_core.Threads") -> None: ...
    def gru_forward(self, arrays: Arrays, threads: "_core.Threads") -> None: ...
    def gru_backward(self, arrays: Arrays, threads: "_core.Threads") -> None: ...
    @property
    def Learner(self) -> "type[_core.Learner]": ...  # noqa: N802
    def orthonormalize(self, vectors: NDArray[np.float64]) -> None: ...
    def gae(self, arrays: Arrays, gamma: float, gae_lambda: float) -> None: ...
    def discounted_sums(self, arrays: Arrays, gamma: float) -> None: ...
    def standardize(
        self, numbers: NDArray[np.float32], valid: NDArray[np.bool_], standardized: NDArray[np.float32]
    ) -> None: ...
    def fit(self, values: NDArray[np.float32], returns: NDArray[np.float32]) -> tuple[float, float]: ...
    def have_values(self, dicts: list[dict[str, Any]], values: list[object]) -> bool: ...
    def crc32c(self, bytes: bytes) -> int: ...


@cache
def core() -> Core:
    """The module `_core`; loaded on first use, because not every run needs it."""
    _load_mujoco()
    elsewhere = os.environ.get("SUREFOOT_NATIVE")  # a build under development
    try:
        module = _load_from(Path(elsewhere)) if elsewhere else _load()
    except ImportError as error:
        raise NativeError(
            f"the native core cannot be imported ({error}); compile and install Surefoot with 'pip install .', or set"
            " rollout.engine to local"
        ) from error
    _check_mujoco(module)
    _check_instructions(module)
    return module


def _load() -> Core:
    from surefoot.native import _core

    return _core


def _load_mujoco() -> None:
    """Load the library by its path in the installed package: the core knows its name but not its path."""
    spec = importlib.util.find_spec("mujoco")
    folders = [] if spec is None else list(spec.submodule_search_locations or [])
    libraries = [path for folder in folders for path in sorted(Path(folder).glob("libmujoco.*"))]
    try:
        ctypes.CDLL(str(libraries[0]), mode=ctypes.RTLD_GLOBAL)
    except (IndexError, OSError) as error:
        reason = str(error) if libraries else "it is missing"
        raise NativeError(
            f"the library of the package 'mujoco' cannot be loaded ({reason}); install the version that Surefoot"
            " requires, or set rollout.engine to local"
        ) from error


def _check_mujoco(module: Core) -> None:
    built, loaded = module.mujoco_versions()
    if built != loaded:
        raise NativeError(
            f"the native core was built with MuJoCo {built} and cannot run with {loaded}; reinstall Surefoot with the"
            " MuJoCo version it requires, or set rollout.engine to local"
        )


def _check_instructions(module: Core) -> None:
    try:
        module.instructions()
    except ValueError as error:
        raise InstructionsError(str(error)) from error


def _load_from(folder: Path) -> Core:
    path = next(folder.glob("_core*.so"), folder / "_core.so")
    spec = importlib.util.spec_from_file_location("surefoot.native._core", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return cast(Core, module)
