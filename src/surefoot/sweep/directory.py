"""The directory of a sweep: its files, a lock against a second process, and settings that stay the same."""

from collections.abc import Collection
from pathlib import Path

import yaml

from surefoot.errors import ConfigError, RunDirectoryError, SweepError
from surefoot.presets import NO_PRESET
from surefoot.settings.config import Config
from surefoot.settings.layers import Raw, read_yaml
from surefoot.storage.run_folder import SWEEP, refuse_other_kind
from surefoot.sweep.settings import FREE_TO_CHANGE, NAME, SweepConfig, read_settings
from surefoot.training.checkpoint import write_atomically

DATABASE, SETTINGS, BEST = "sweep.db", "sweep.yaml", "best.yaml"


def keep_settings(path: Path, config: Config, sweep: SweepConfig) -> None:
    """Write the settings of a new sweep; a continued one must have the same."""
    file = path / SETTINGS
    refuse_other_kind(path, SWEEP)
    if (path / DATABASE).exists() and not file.exists():
        raise RunDirectoryError(f"{path} contains a sweep without {SETTINGS}; restore it, or choose another --run-dir")
    if file.exists():
        _refuse_differences(*read_settings(read_yaml(file), {}), config, sweep)
    write_settings(file, {**config.model_dump(mode="json"), NAME: sweep.model_dump(mode="json")})


def refuse_unknown_runs(path: Path, known: Collection[int]) -> None:
    """Refuse runs of trials that the database does not have: they would be mixed with new ones of the same number."""
    folders = sorted(path.glob("trials/*")) + sorted(path.glob("finals/*"))
    for folder in folders:
        if folder.name.isdecimal() and int(folder.name) not in known:
            raise SweepError(
                f"{folder} is a trial that {path / DATABASE} does not have: the file was deleted, replaced or damaged;"
                " restore it, or choose another --run-dir for a new sweep; the runs are unchanged"
            )


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
