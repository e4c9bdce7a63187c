"""Compares the processes of a run before anything is built: other settings in one of them would change the result."""

import hashlib
import os
import platform
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from io import FileIO
from itertools import islice
from pathlib import Path
from typing import Any, cast

import torch

from surefoot.errors import RankError
from surefoot.machine.ranks import Ranks, together
from surefoot.native.kernels import core_or_none
from surefoot.output.quoted import quoted
from surefoot.settings.config import Config
from surefoot.storage.files import open_regular
from surefoot.storage.trust import names_in
from surefoot.version import VERSION

_PACKAGES = ("torch", "numpy", "gymnasium", "mujoco")
_MISSING = "missing"
_MOST_FILES, _MOST_NAMES = 1000, 100_000
"""Files of a folder whose contents are compared, and whose names are."""
_LISTED = 10
"""Maximum number of differences in a message."""


@contextmanager
def joined(command: str) -> Iterator[Ranks]:
    """All processes that torchrun started, with the same command, versions and instructions; or this one alone."""
    with together() as ranks:
        check_alike(ranks, lambda: {"command": f"surefoot {command}", **_surroundings()})
        yield ranks


def check_settings(ranks: Ranks, config: Config, start_from: Path | None = None) -> None:
    """Refuse processes whose settings decide differently, or whose files and modules of these names differ."""

    def facts() -> dict[str, Any]:
        model = {} if start_from is None else {"contents of train.start_from": _digest(start_from)}
        return config.decisive() | model | _contents(config)

    check_alike(ranks, facts)


def check_alike(ranks: Ranks, facts: Callable[[], Mapping[str, Any]]) -> None:
    """Refuse processes whose facts differ, in all of them and with the same error, which names both values."""
    if ranks.size == 1:
        return
    told = ranks.gather(dict(facts()))
    values = {name: [one.get(name, _MISSING) for one in told] for named in told for name in named}
    differing = [f"{name} is {_by_process(found)}" for name, found in values.items() if len(set(map(repr, found))) > 1]
    if differing:
        more = f"; and {len(differing) - _LISTED} more" if len(differing) > _LISTED else ""
        raise RankError(
            f"the processes of this run differ: {'; '.join(differing[:_LISTED])}{more}; start all of them with the same"
            " command, files, versions and instruction set (SUREFOOT_INSTRUCTIONS, ATEN_CPU_CAPABILITY)"
        )


def _by_process(values: list[Any]) -> str:
    """`0.9 in process 0, 0.99 in processes 1, 2`."""
    groups: dict[str, list[int]] = {}
    for rank, value in enumerate(values):
        groups.setdefault(repr(value), []).append(rank)
    return ", ".join(
        f"{quoted(values[own[0]])} in process{'es' * (len(own) > 1)} {', '.join(map(str, own))}"
        for own in groups.values()
    )


def _surroundings() -> dict[str, str]:
    core = core_or_none()
    return {
        "surefoot": VERSION,
        "python": ".".join(platform.python_version_tuple()[:2]),
        **{name: _version(name) for name in _PACKAGES},
        "the instruction set of the core": _MISSING if core is None else core.instructions(),
        "the instruction set of PyTorch": torch.backends.cpu.get_cpu_capability(),
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return _MISSING


def _contents(config: Config) -> dict[str, str]:
    """Digests of the files, folders and sources of modules that a config names."""
    found = {}
    for text in sorted(names_in(config.model_dump(mode="json"))):
        for name in {text, *text.split(":")}:
            file = _file(name, is_module=name != text)
            if file is not None:
                found[f"contents of {name}"] = _digest(file)
    return found


def _file(name: str, is_module: bool) -> Path | None:
    with suppress(Exception):  # whatever a module does when it is looked for: creating the env reports it
        path = Path(name).expanduser()
        if name and (path.is_file() or (path.is_dir() and not Path.cwd().is_relative_to(path.resolve()))):
            return path
        if is_module and all(word.isidentifier() for word in name.split(".")):
            spec = find_spec(name)
            return Path(spec.origin) if spec is not None and spec.has_location and spec.origin else None
    return None


def _digest(path: Path) -> str:
    """The beginning of the SHA-256 of a file, or of the names and contents of a folder."""
    try:
        if path.is_file():
            return _sha256(path)[:16]
        digest = hashlib.sha256()
        for place, file in enumerate(islice(_files(path), _MOST_NAMES)):
            has_contents = place < _MOST_FILES and file.is_file()
            entry = f"{file.relative_to(path)} {_sha256(file) if has_contents else ''}\n"
            digest.update(entry.encode(errors="surrogateescape"))
        return digest.hexdigest()[:16]
    except OSError as error:
        return f"not readable ({error.strerror})"


def _sha256(file: Path) -> str:
    with open_regular(file) as content:
        return hashlib.file_digest(cast(FileIO, content), "sha256").hexdigest()


def _files(folder: Path) -> Iterator[Path]:
    """All files in a folder, in the same order everywhere; without what is hidden or compiled by Python."""
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__pycache__")))
        yield from (Path(root, name) for name in sorted(names))
