"""metrics.jsonl: one JSON object per line."""

import json
import time
from pathlib import Path

from surefoot.core.config import Config
from surefoot.core.parts import PartSettings
from surefoot.telemetry.sinks import FileSink, Metrics, file_sinks

FILE_NAME = "metrics.jsonl"


@file_sinks.register("jsonl")
class JsonlSink(FileSink):
    """Appended and flushed line by line, so that a killed run loses nothing."""

    def __init__(self, folder: Path, config: Config, settings: PartSettings | None = None) -> None:
        self._file = (folder / FILE_NAME).open("a", encoding="utf-8")

    def write(self, step: int, metrics: Metrics) -> None:
        """Append a line."""
        record = {"step": step, "time": round(time.time(), 3), **metrics}
        self._file.write(json.dumps(record, allow_nan=False) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
