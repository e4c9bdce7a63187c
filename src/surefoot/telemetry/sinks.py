"""Sinks: a sink is `write` and `close`; a group of them shields the training from one that fails."""

import contextlib
import json
import logging
import math
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

_log = logging.getLogger("surefoot")

Metrics = Mapping[str, float]


class Sink(Protocol):
    """Takes metric records."""

    def write(self, step: int, metrics: Metrics) -> None:
        """One record; values are finite."""

    def close(self) -> None:
        """Flush and release."""


class SinkGroup:
    """Writes to all; one that fails is dropped with one warning, and the training goes on."""

    def __init__(self, sinks: Sequence[Sink]) -> None:
        self._sinks = list(sinks)

    def write(self, step: int, metrics: Metrics) -> None:
        """One record to every sink; what is not finite is left out, as missing."""
        finite = {name: value for name, value in metrics.items() if math.isfinite(value)}
        for sink in list(self._sinks):
            try:
                sink.write(step, finite)
            except Exception as error:
                self._sinks.remove(sink)
                _log.warning("%s failed and is switched off: %s", type(sink).__name__, error)
                with contextlib.suppress(Exception):
                    sink.close()

    def close(self) -> None:
        """Close every sink."""
        for sink in self._sinks:
            try:
                sink.close()
            except Exception as error:
                _log.warning("%s failed to close: %s", type(sink).__name__, error)


class JsonlSink:
    """One JSON object a line, appended and flushed, so that a killed run loses nothing."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")

    def write(self, step: int, metrics: Metrics) -> None:
        """Append a line."""
        record = {"step": step, "time": round(time.time(), 3), **metrics}
        self._file.write(json.dumps(record, allow_nan=False) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class TensorBoardSink:
    """TensorBoard scalars, written with tensorboard's own event writer."""

    def __init__(self, folder: Path) -> None:
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._writer = EventFileWriter(os.fspath(folder))

    def write(self, step: int, metrics: Metrics) -> None:
        """Add one event with all values."""
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        values: list[Any] = [Summary.Value(tag=name, simple_value=value) for name, value in metrics.items()]
        self._writer.add_event(Event(wall_time=time.time(), step=step, summary=Summary(value=values)))

    def close(self) -> None:
        """Flush and close the event file."""
        self._writer.close()
