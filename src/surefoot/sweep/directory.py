"""The directory of a sweep: its files, a lock against a second process, and settings that stay the same."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from surefoot.core.config import Config
from surefoot.core.errors import ConfigError, RunDirectoryError
from surefoot.core.files import open_own
from surefoot.core.layers import Raw, read_yaml
from surefoot.presets import NO_PRESET
from surefoot.sweep.settings import FREE_TO_CHANGE, NAME, SweepConfig, read_settings
from surefoot.training.checkpoint import write_atomically

DATABASE, SETTINGS, BEST = "sweep.db", "sweep.yaml", "best.yaml"


def keep_settings(path: Path, config: Config, sweep: SweepConfig) -> None:
    """Write the settings of a new sweep; a continued one must have the same."""
    file = path / SETTINGS
    if (path / "config.yaml").exists() or ((path / DATABASE).exists() and not file.exists()):
        raise RunDirectoryError(f"{path} contains a run, or a sweep without {SETTINGS}; choose another --run-dir")
    if file.exists():
        _refuse_differences(*read_settings(read_yaml(file), {}), config, sweep)
    write_settings(file, {**config.model_dump(mode="json"), NAME: sweep.model_dump(mode="json")})


def write_settings(file: Path, settings: Raw) -> None:
    """Write a complete config, below which there is no preset."""
    text = yaml.safe_dump({"preset": NO_PRESET, **settings}, sort_keys=False)
    try:
        write_atomically(file, text.encode())
    except OSError as error:
        raise RunDirectoryError(
            f"cannot write {file} ({error.strerror}); remove the cause and run the same command again"
        ) from error


def _refuse_differences(config: Config, sweep: SweepConfig, new_config: Config, new_sweep: SweepConfig) -> None:
    old = {**config.model_dump(mode="json"), NAME: sweep.model_dump(mode="json", exclude=set(FREE_TO_CHANGE))}
    new = {**new_config.model_dump(mode="json"), NAME: new_sweep.model_dump(mode="json", exclude=set(FREE_TO_CHANGE))}
    problems = [
        f"{section}.{key}: cannot change when a sweep is continued (it has {old[section].get(key)!r}, requested"
        f" {new[section].get(key)!r}); choose another --run-dir for a new sweep"
        for section in old
        for key in old[section] | new[section]
        if old[section].get(key) != new[section].get(key)
    ]
    if problems:
        raise ConfigError(problems)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Only one process runs a sweep; the kernel releases the lock of a process that died."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock = os.fdopen(open_own(path / "lock", os.O_RDWR), "r+", encoding="utf-8")
    except OSError as error:
        raise RunDirectoryError(f"{path} is not writable ({error.strerror}); choose another with --run-dir") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise RunDirectoryError(
                f"the sweep in {path} is in use by process {lock.read().strip() or 'unknown'}; stop it or choose"
                " another with --run-dir"
            ) from error
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield
