"""Environments in a library that a user compiled: `./my_env.so`, or `./my_env.so:MyEnv-v0` where it has several."""

import importlib.util
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter, signature
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium as gym

from surefoot.errors import EnvError, NativeError
from surefoot.native import core
from surefoot.settings.registry import nearest

TWINS = "TWINS"
"""What a Python file beside a library says about its envs: a dict of classes by id."""
_ID = re.compile(r"(?P<path>.+\.(?:so|dylib))(?::(?P<name>.+))?")


def is_library(env_id: str) -> bool:
    """Whether an id is the path of a library, perhaps with the id of one of its envs."""
    return _ID.fullmatch(env_id) is not None


def library_envs(path: Path) -> dict[str, int]:
    """Ids of a library's envs, and their time limits in steps (0: none)."""
    if not path.is_file():
        source = path.with_suffix(".cpp").name
        raise NativeError(f"{path} does not exist; compile it with 'surefoot native build {source}'")
    try:
        return dict(core().library_envs(str(path.absolute())))
    except ValueError as error:
        raise NativeError(str(error)) from error


@dataclass(frozen=True)
class LibraryFactory:
    """Makes the Python twin of a library's env, the readable reference that stands beside it: `my_env.py`."""

    path: str
    name: str
    kwargs: Mapping[str, Any]
    max_episode_steps: int
    """0: no limit."""

    @property
    def has_twin(self) -> bool:
        """Whether a Python file beside the library has this env too."""
        return self._twin() is not None

    @property
    def twin_draws(self) -> bool:
        """Whether there is a twin whose constructor accepts a render mode."""
        twin = self._twin()
        return twin is not None and accepts(twin, "render_mode")

    def __call__(self) -> Any:
        twin, limit = self._twin(), self.max_episode_steps
        if twin is None:
            raise EnvError(
                f"'{self.name}' of {self.path} has no Python twin ({TWINS} in {self._file().name} beside it); set"
                " rollout.engine to auto or native"
            )
        try:
            if limit and "max_cycles" in signature(twin).parameters:  # PettingZoo's name for it
                return twin(**self.kwargs, max_cycles=limit)
            env = twin(**self.kwargs)
        except TypeError as error:
            raise EnvError(
                f"the Python twin of '{self.name}' does not accept env.kwargs {dict(self.kwargs)}: {error}"
            ) from error
        return gym.wrappers.TimeLimit(env, limit) if limit else env

    def _file(self) -> Path:
        return Path(self.path).with_suffix(".py")

    def _twin(self) -> Callable[..., Any] | None:
        if not self._file().is_file():
            return None
        twin: Callable[..., Any] | None = getattr(_loaded(self._file()), TWINS, {}).get(self.name)
        return twin


def accepts(function: Callable[..., Any], argument: str) -> bool:
    """Whether a function or class accepts an argument of this name."""
    try:
        parameters = signature(function).parameters
    except (TypeError, ValueError):  # a callable without a signature
        return False
    return argument in parameters or any(each.kind is Parameter.VAR_KEYWORD for each in parameters.values())


def library_factory(
    env_id: str, kwargs: Mapping[str, Any] | None = None, max_episode_steps: int | None = None
) -> LibraryFactory:
    """The factory of a library's env, with its own time limit if none is given."""
    found = _ID.fullmatch(env_id)
    assert found is not None
    path, name = Path(found["path"]).absolute(), found["name"]
    envs = library_envs(path)
    if name is None and len(envs) == 1:
        name = next(iter(envs))
    if name not in envs:
        known = ", ".join(f"{found['path']}:{one}" for one in envs)
        hint = nearest(name, envs) if name else ""
        asked = f"{path} has no environment '{name}'{hint}" if name else f"{path} has several environments"
        raise EnvError(f"{asked}; choose one of {known}")
    limit = envs[name] if max_episode_steps is None else max_episode_steps
    return LibraryFactory(str(path), name, kwargs or {}, limit)


def _loaded(file: Path) -> ModuleType:
    """A Python file as a module, loaded once; its own folder is where it imports from."""
    name = f"surefoot_twin_{abs(hash(str(file)))}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise EnvError(f"{file} could not be imported: {type(error).__name__}: {error}") from error
    return module
