"""Sinks take metric records: a sink is `write` and `close`; those that write into a run's folder are one file each.

A sink of your own is named in `log.sinks`, with settings of its own.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from surefoot.core.config import Config, LogConfig
from surefoot.core.errors import ConfigError
from surefoot.core.parts import PartSettings
from surefoot.core.registry import Registry

Metrics = Mapping[str, float]


class Sink(Protocol):
    """Takes metric records."""

    def write(self, step: int, metrics: Metrics) -> None:
        """One record; values are finite."""

    def close(self) -> None:
        """Flush and release."""


class FileSink(ABC):
    """Base of sinks that keep metric records in a run's folder, or send them elsewhere."""

    @abstractmethod
    def __init__(self, folder: Path, config: Config, settings: PartSettings | None = None) -> None:
        """Open; the folder may hold what an earlier process of the same run wrote."""

    @staticmethod
    def is_wanted(log: LogConfig) -> bool:
        """Whether the settings ask for it."""
        return True

    @staticmethod
    def missing_package() -> str | None:
        """What to say if a package is missing that it needs."""
        return None

    @abstractmethod
    def write(self, step: int, metrics: Metrics) -> None:
        """One record; values are finite."""

    @abstractmethod
    def close(self) -> None:
        """Flush and release."""


file_sinks: Registry[FileSink] = Registry("sink", "surefoot.telemetry.sinks", base="FileSink")


def check_sinks(log: LogConfig) -> None:
    """Refuse settings that need what is not installed, before there is a run."""
    problems = [problem for kind in _wanted(log) if (problem := kind.missing_package())]
    if problems:
        raise ConfigError(problems)


def open_sinks(folder: Path, config: Config) -> list[Sink]:
    """The sinks that the settings ask for; all of them or, if one cannot be opened, none."""
    opened: list[Sink] = []
    try:
        for kind in _wanted(config.log):
            opened.append(kind(folder, config))
        for settings in config.log.sinks.values():
            opened.append(file_sinks[settings.kind](folder, config, settings))
    except BaseException:
        for sink in opened:
            sink.close()
        raise
    return opened


def _wanted(log: LogConfig) -> list[type[FileSink]]:
    found = (file_sinks[name] for name in file_sinks.names())
    return [kind for kind in found if kind.is_wanted(log)]
