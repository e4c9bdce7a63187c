"""Name -> class: the files of one folder register themselves, and `module:Name` reaches any class outside."""

import difflib
import importlib
import os
import pkgutil
import sys
from collections.abc import Callable, Iterable, Sequence
from inspect import isfunction
from typing import Any, Generic, TypeVar

from surefoot.errors import ConfigError
from surefoot.output.failures import let_interrupts_through
from surefoot.storage.trust import WANTS_TO_IMPORT, may_import

T = TypeVar("T")

AUTO = "auto"
"""The kind that selects another kind automatically."""


def nearest(name: str, known: Iterable[str]) -> str:
    """A "did you mean" clause, or nothing when no known name is close."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"; did you mean '{close[0]}'?" if close else ""


class Registry(Generic[T]):
    """The implementations of one kind; the modules of `package` are imported on first use.

    `base` names the class in `package` that implementations derive from; `automatic` the kinds that `auto` may choose;
    `of_function` makes a class of a function that `module:name` leads to.
    """

    _all: dict[str, "Registry[Any]"] = {}

    def __init__(
        self,
        kind: str,
        package: str,
        setting: str = "",
        base: str = "",
        automatic: Sequence[str] = (),
        of_function: Callable[[Any], type[T]] | None = None,
    ) -> None:
        self.kind, self.automatic, self._of_function = kind, tuple(automatic), of_function
        self._where = f"{setting}: " if setting else ""
        self._package, self._base = package, base
        self._entries: dict[str, type[T]] = {}
        self._loaded = False
        Registry._all[package] = self

    @staticmethod
    def of(package: str) -> "Registry[Any]":
        """The registry that a package declares."""
        importlib.import_module(package)
        return Registry._all[package]

    def register(self, name: str) -> Callable[[type[T]], type[T]]:
        """Class decorator that makes a class available under `name`."""

        def add(cls: type[T]) -> type[T]:
            self._entries[name] = cls
            return cls

        return add

    def __getitem__(self, name: str) -> type[T]:
        if ":" in name:
            return self._from_outside(name)
        self._load()
        if name not in self._entries:
            raise ConfigError(
                f"{self._where}unknown {self.kind} '{name}'{nearest(name, self._entries)}"
                f" (known: {', '.join(self.names())}; or module:Name)"
            )
        return self._entries[name]

    def names(self) -> list[str]:
        """All registered names, sorted."""
        self._load()
        return sorted(self._entries)

    def _load(self) -> None:
        if self._loaded:
            return
        self._loaded = True
        package = importlib.import_module(self._package)
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{self._package}.{module.name}")

    def _from_outside(self, name: str) -> type[T]:
        module_name, _, attribute = name.partition(":")
        if not may_import(name):
            raise ConfigError(f"{self._where}{WANTS_TO_IMPORT} '{name}'; if you trust it, pass --trust or trust=True")
        module = import_user_module(module_name, f"{self._where}'{name}'")
        found = getattr(module, attribute, None)
        if found is None:
            hint = nearest(attribute, vars(module))
            raise ConfigError(f"{self._where}module '{module_name}' has no '{attribute}'{hint}")
        if self._of_function is not None and isfunction(found):
            return self._of_function(found)
        base = getattr(importlib.import_module(self._package), self._base) if self._base else object
        if not (isinstance(found, type) and issubclass(found, base)):
            home = "surefoot" if self._base in importlib.import_module("surefoot").__all__ else self._package
            function = " or a function" if self._of_function is not None else ""
            raise ConfigError(f"{self._where}'{name}' must be a subclass of {home}.{self._base}{function}")
        return found  # type: ignore[return-value]


def import_user_module(name: str, who: str) -> Any:
    """A module from the Python path or the current folder, or a ConfigError that says what went wrong."""
    search_current_folder()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and name.startswith(error.name):
            raise ConfigError(
                f"{who}: no module named '{name}'; run in the directory of {name}.py or add it to PYTHONPATH"
            ) from error
        raise ConfigError(f"{who}: importing '{name}' failed: {error}") from error
    except BaseException as error:
        let_interrupts_through(error)
        raise ConfigError(f"{who}: importing '{name}' failed: {type(error).__name__}: {error}") from error


def search_current_folder() -> None:
    """Let modules be imported from the current folder, by worker processes too."""
    folder = os.getcwd()
    if folder not in sys.path:
        sys.path.append(folder)
