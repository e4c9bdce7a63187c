"""Weights & Biases; WANDB_MODE=offline logs offline, for `wandb sync` later."""

import importlib.util
import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from surefoot.errors import ConfigError
from surefoot.machine.extras import install_hint
from surefoot.settings.config import Config, LogConfig
from surefoot.settings.parts import PartSettings
from surefoot.telemetry import names
from surefoot.telemetry.sinks import FileSink, Metrics, Video, file_sinks

_START_S = 60.0
_FINISH_S, _LET_GO_S = 30.0, 1.0
"""Data not uploaded by then stays in the run directory: a finished run must not hang."""


@file_sinks.register("wandb")
class WandbSink(FileSink):
    """One W&B run per process of a run, grouped under the name of the run directory."""

    def __init__(self, folder: Path, config: Config, settings: PartSettings | None = None) -> None:
        import wandb

        self._wandb: Any = wandb
        # Silent and without capturing stdout: the terminal belongs to the live display.
        options = wandb.Settings(silent=True, console="off", save_code=False, disable_git=True, init_timeout=_START_S)
        group = folder.resolve().name
        try:
            with _quiet_in(folder):
                self._run: Any = wandb.init(
                    dir=folder,
                    project=config.log.wandb_project,
                    name=config.log.wandb_name or group,
                    group=group,
                    config=config.model_dump(mode="json"),
                    settings=options,
                )
        except Exception as error:
            _call_within(_LET_GO_S, wandb.teardown)
            raise ConfigError(
                [
                    f"log.wandb: W&B failed to start ({_first_line(error)}); run 'wandb login', set"
                    " WANDB_MODE=offline to upload later, or set log.wandb to false"
                ]
            ) from error

        # Its debug log prints a traceback per line when the disk is full.
        logging.getLogger("wandb").setLevel(logging.CRITICAL)

    @staticmethod
    def is_wanted(log: LogConfig) -> bool:
        """Off by default."""
        return log.wandb

    @staticmethod
    def missing_package() -> str | None:
        """How to install the extra `wandb`, if it is missing."""
        if importlib.util.find_spec("wandb") is not None:
            return None
        return f"log.wandb: the package wandb is not installed; {install_hint('wandb')}"

    def write(self, step: int, metrics: Metrics) -> None:
        """Log all values at this step."""
        self._run.log(dict(metrics), step=step)

    def write_video(self, step: int, video: Video) -> None:
        """Log the file at this step."""
        shown = self._wandb.Video(os.fspath(video.path), format=video.path.suffix.removeprefix("."))
        self._run.log({names.VIDEO: shown}, step=step)

    def close(self) -> None:
        """Finish the W&B run, with a time limit: without a network it could take forever."""
        failures = _call_within(_FINISH_S, self._run.finish)
        if failures is None or failures:
            # W&B also waits for its service at exit, unless it is torn down.
            _call_within(_LET_GO_S, self._wandb.teardown)
        if failures is None:
            kept = Path(self._run.dir).parent
            raise TimeoutError(f"the upload did not finish within {_FINISH_S:g} s; run later: wandb sync {kept}")
        for failure in failures:
            raise failure


def _call_within(seconds: float, function: Callable[[], object]) -> list[Exception] | None:
    """Call a function in a separate thread; returns its exceptions, or None if it did not return in time."""
    failures: list[Exception] = []

    def call() -> None:
        try:
            function()
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(seconds)
    return None if thread.is_alive() else failures


@contextmanager
def _quiet_in(folder: Path) -> Iterator[None]:
    """Redirect W&B's service log and cache, which are in the home directory by default, into the run directory."""
    ours = {"WANDB_SILENT": "true", "WANDB_CACHE_DIR": os.fspath(folder.resolve() / "wandb" / "cache")}
    missing = {name: value for name, value in ours.items() if name not in os.environ}
    os.environ.update(missing)
    try:
        yield
    finally:
        for name in missing:
            del os.environ[name]


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
