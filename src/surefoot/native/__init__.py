"""The compiled core, and the library of MuJoCo that it needs loaded first."""

import ctypes
import importlib.util
import os
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

from surefoot.core.errors import NativeError


@cache
def core() -> ModuleType:
    """The module `_core`; loaded when it is first asked for, because not every run needs it."""
    _load_mujoco()
    elsewhere = os.environ.get("SUREFOOT_NATIVE")  # a build under development
    if elsewhere:
        return _load_from(Path(elsewhere))
    try:
        from surefoot.native import _core
    except ImportError as error:
        raise NativeError(
            f"the native core is not there ({error}); install Surefoot with 'pip install .', which compiles it, or set"
            " rollout.engine to local"
        ) from error
    _check_mujoco(_core)
    return _core


def _load_mujoco() -> None:
    """By path, from the installed package: the core names its library but not where it is."""
    spec = importlib.util.find_spec("mujoco")
    folders = [] if spec is None else list(spec.submodule_search_locations or [])
    libraries = [path for folder in folders for path in sorted(Path(folder).glob("libmujoco.*"))]
    if not libraries:
        raise NativeError("the package 'mujoco' is not installed; install it as Surefoot's requirements say")
    ctypes.CDLL(str(libraries[0]), mode=ctypes.RTLD_GLOBAL)


def _check_mujoco(module: ModuleType) -> None:
    built, loaded = module.mujoco_versions()
    if built != loaded:
        raise NativeError(
            f"the native core was built with MuJoCo {built} and cannot run with {loaded}; install Surefoot again"
        )


def _load_from(folder: Path) -> ModuleType:
    path = next(folder.glob("_core*.so"))
    spec = importlib.util.spec_from_file_location("surefoot.native._core", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
