"""TensorBoard events, in the run directory."""

import os
import socket
import time
from pathlib import Path
from typing import Any

from surefoot.settings.config import Config, LogConfig
from surefoot.settings.parts import PartSettings
from surefoot.telemetry import names
from surefoot.telemetry.sinks import FileSink, Metrics, Video, file_sinks


@file_sinks.register("tensorboard")
class TensorBoardSink(FileSink):
    """Scalars and videos in TensorBoard's record format.

    Records are written synchronously: TensorBoard's event writer has a thread that prints a traceback when the disk is
    full.
    """

    def __init__(self, folder: Path, config: Config, settings: PartSettings | None = None) -> None:
        from tensorboard.summary.writer.record_writer import RecordWriter

        name = f"events.out.tfevents.{time.time_ns()}.{socket.gethostname()}.{os.getpid()}"
        self._records = RecordWriter((folder / name).open("xb"))
        self._add(0, file_version="brain.Event:2")

    @staticmethod
    def is_wanted(log: LogConfig) -> bool:
        """On by default."""
        return log.tensorboard

    def rewind(self, step: int) -> None:
        """TensorBoard hides the events of earlier processes from this step on."""
        from tensorboard.compat.proto.event_pb2 import SessionLog

        self._add(step, session_log=SessionLog(status=SessionLog.START))

    def write(self, step: int, metrics: Metrics) -> None:
        """Add one event with all values."""
        from tensorboard.compat.proto.summary_pb2 import Summary

        values: list[Any] = [Summary.Value(tag=name, simple_value=value) for name, value in metrics.items()]
        self._add(step, summary=Summary(value=values))

    def write_video(self, step: int, video: Video) -> None:
        """Add the moving picture as an image, which TensorBoard's page plays."""
        from tensorboard.compat.proto.summary_pb2 import Summary

        width, height = video.gif_size
        image = Summary.Image(height=height, width=width, colorspace=3, encoded_image_string=video.gif)
        self._add(step, summary=Summary(value=[Summary.Value(tag=names.VIDEO, image=image)]))

    def close(self) -> None:
        """Close the event file."""
        self._records.close()

    def _add(self, step: int, **content: Any) -> None:
        from tensorboard.compat.proto.event_pb2 import Event

        self._records.write(Event(wall_time=time.time(), step=step, **content).SerializeToString())
        self._records.flush()
