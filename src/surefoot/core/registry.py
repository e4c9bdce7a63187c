"""Name -> class, filled by the files of one folder: adding a thing is adding a file."""

import difflib
import importlib
import pkgutil
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from surefoot.core.errors import ConfigError

T = TypeVar("T")


def nearest(name: str, known: Iterable[str]) -> str:
    """A "did you mean" clause, or nothing when no known name is close."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"; did you mean '{close[0]}'?" if close else ""


class Registry(Generic[T]):
    """The implementations of one kind; the modules of `package` are imported on first use."""

    def __init__(self, kind: str, package: str, setting: str = "") -> None:
        self.kind = kind
        self._where = f"{setting}: " if setting else ""
        self._package = package
        self._entries: dict[str, type[T]] = {}
        self._loaded = False

    def register(self, name: str) -> Callable[[type[T]], type[T]]:
        """Class decorator that makes a class available under `name`."""

        def add(cls: type[T]) -> type[T]:
            self._entries[name] = cls
            return cls

        return add

    def __getitem__(self, name: str) -> type[T]:
        self._load()
        if name not in self._entries:
            raise ConfigError(
                [
                    f"{self._where}there is no {self.kind} '{name}'{nearest(name, self._entries)}"
                    f" (known: {', '.join(self.names())})"
                ]
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
