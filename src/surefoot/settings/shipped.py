"""YAML files that come with Surefoot and are used by name; the first line of each is a comment that describes it.

Those in a folder have its name in front: `Hopper-v5/fast`.
"""

from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from surefoot.errors import ConfigError
from surefoot.settings.layers import Raw, read_yaml
from surefoot.settings.registry import nearest
from surefoot.settings.strict_yaml import parse_yaml

_SUFFIX = ".yaml"


class Shipped:
    """The files of a package."""

    def __init__(self, package: str) -> None:
        self._package = package

    def names(self) -> list[str]:
        """The names of all files, sorted."""
        return sorted(_names_in(resources.files(self._package)))

    def describe(self, name: str) -> str:
        """What a file is for."""
        return self.text(name).splitlines()[0].removeprefix("#").strip()

    def load(self, name: str) -> Raw:
        """The settings of a file."""
        return dict(parse_yaml(self.text(name)))

    def read(self, config: str) -> Raw:
        """The settings of a user's file or, if there is none of this name, of one of these."""
        path, names = Path(config), self.names()
        if path.exists() or path.suffix:
            return read_yaml(path)
        if config not in names:
            raise ConfigError(f"'{config}' is neither a file nor a preset ({', '.join(names)}){nearest(config, names)}")
        return self.load(config)

    def text(self, name: str) -> str:
        """The YAML of a file."""
        return resources.files(self._package).joinpath(f"{name}{_SUFFIX}").read_text(encoding="utf-8")


def _names_in(folder: Traversable, prefix: str = "") -> Iterator[str]:
    for entry in folder.iterdir():
        if entry.name.endswith(_SUFFIX):
            yield prefix + entry.name.removesuffix(_SUFFIX)
        elif entry.is_dir() and not entry.name.startswith("__"):
            yield from _names_in(entry, f"{prefix}{entry.name}/")
