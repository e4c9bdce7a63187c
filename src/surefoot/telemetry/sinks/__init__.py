"""Sinks receive metric records through `write` and `close`; built-in sinks of a run have one file each.

Your own sinks go into `log.sinks`, with their own settings.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from surefoot.errors import ConfigError, SinkError, SurefootError
from surefoot.output.failures import brief, let_interrupts_through
from surefoot.settings.config import Config, LogConfig
from surefoot.settings.parts import PartSettings
from surefoot.settings.registry import Registry

Metrics = Mapping[str, float]


@dataclass(frozen=True)
class Video:
    """A video of the policy (`train.video_every`), and a small moving picture of it."""

    path: Path
    gif: bytes
    gif_size: tuple[int, int]
    """Width and height."""


class Sink(Protocol):
    """Receives metric records."""

    def write(self, step: int, metrics: Metrics) -> None:
        """Write one record; values are finite."""

    def close(self) -> None:
        """Flush and release resources."""


class FileSink(ABC):
    """Base class of sinks that write metric records to a run directory, or send them to a service."""

    @abstractmethod
    def __init__(self, folder: Path, config: Config, settings: PartSettings | None = None) -> None:
        """Open the sink; the directory may already contain records of an earlier process of the same run."""

    @staticmethod
    def is_wanted(log: LogConfig) -> bool:
        """Whether the settings enable this sink."""
        return True

    @staticmethod
    def missing_package() -> str | None:
        """The error message if a required package is missing, else None."""
        return None

    @abstractmethod
    def write(self, step: int, metrics: Metrics) -> None:
        """Write one record; values are finite."""

    def rewind(self, step: int) -> None:  # noqa: B027
        """The run continues from a checkpoint: earlier processes may have written records from this step on."""

    def write_video(self, step: int, video: Video) -> None:  # noqa: B027
        """Show a video of the policy; sinks of numbers ignore it."""

    @abstractmethod
    def close(self) -> None:
        """Flush and release resources."""


file_sinks: Registry[FileSink] = Registry("sink", "surefoot.telemetry.sinks", base="FileSink")


def check_sinks(log: LogConfig) -> None:
    """Reject settings that require a missing package, before the run starts."""
    problems = [problem for kind in _wanted(log) if (problem := kind.missing_package())]
    if problems:
        raise ConfigError(problems)


def open_sinks(folder: Path, config: Config, first_step: int = 0) -> list[Sink]:
    """The sinks that the settings enable; if one cannot be opened, the others are closed again.

    Records of earlier processes from `first_step` on are void; 0 in a new run.
    """
    opened: list[Sink] = []
    try:
        for kind in _wanted(config.log):
            opened.append(_opened(kind.__name__, first_step, kind, folder, config))
        for name, settings in config.log.sinks.items():
            opened.append(_opened(f"log.sinks.{name}", first_step, file_sinks[settings.kind], folder, config, settings))
    except BaseException:
        for sink in opened:
            close_quietly(sink)
        raise
    return opened


def close_quietly(sink: Sink) -> None:
    """Close a sink whose errors no longer matter."""
    try:
        sink.close()
    except BaseException as error:
        let_interrupts_through(error)


def _opened(name: str, first_step: int, kind: type[FileSink], *arguments: Any) -> FileSink:
    try:
        sink = kind(*arguments)
        if first_step:
            sink.rewind(first_step)
        return sink
    except SurefootError:
        raise
    except BaseException as error:  # nothing is lost yet: refused before the first step
        let_interrupts_through(error)
        is_file = isinstance(error, OSError)
        remedy = "move the file away or choose another run directory" if is_file else "fix it or remove it from log"
        raise SinkError(f"{name} could not be opened: {brief(error)}; {remedy}") from error


def _wanted(log: LogConfig) -> list[type[FileSink]]:
    found = (file_sinks[name] for name in file_sinks.names())
    return [kind for kind in found if kind.is_wanted(log)]
