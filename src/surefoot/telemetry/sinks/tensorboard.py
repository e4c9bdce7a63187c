"""TensorBoard events, in the run directory."""

import os
import socket
import time
from pathlib import Path

from surefoot.settings.config import Config, LogConfig
from surefoot.settings.parts import PartSettings
from surefoot.telemetry import names
from surefoot.telemetry.event_file import EventFile, file_version, image, scalars, session_start
from surefoot.telemetry.sinks import FileSink, Metrics, Video, file_sinks


@file_sinks.register("tensorboard")
class TensorBoardSink(FileSink):
    """Scalars and videos in TensorBoard's record format.

    Records are written synchronously: TensorBoard's event writer has a thread that prints a traceback when the disk is
    full.
    """

    def __init__(self, folder: Path, config: Config, settings: PartSettings | None = None) -> None:
        name = f"events.out.tfevents.{time.time_ns()}.{socket.gethostname()}.{os.getpid()}"
        self._events = EventFile(folder / name)
        self._add(0, file_version())

    @staticmethod
    def is_wanted(log: LogConfig) -> bool:
        """On by default."""
        return log.tensorboard

    def rewind(self, step: int) -> None:
        """TensorBoard hides the events of earlier processes from this step on."""
        self._add(step, session_start())

    def write(self, step: int, metrics: Metrics) -> None:
        """Add one event with all values."""
        self._add(step, scalars(metrics))

    def write_video(self, step: int, video: Video) -> None:
        """Add the moving picture as an image, which TensorBoard's page plays."""
        self._add(step, image(names.VIDEO, video.gif, *video.gif_size))

    def close(self) -> None:
        """Close the event file."""
        self._events.close()

    def _add(self, step: int, content: bytes) -> None:
        self._events.add(time.time(), step, content)
