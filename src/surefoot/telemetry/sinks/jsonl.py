"""metrics.jsonl: one JSON object per line."""

import json
import time
from pathlib import Path

from surefoot.settings.config import Config
from surefoot.settings.parts import PartSettings
from surefoot.storage.files import AppendedFile
from surefoot.telemetry.sinks import FileSink, Metrics, file_sinks

FILE_NAME = "metrics.jsonl"
_ENCODER = json.JSONEncoder(allow_nan=False)


@file_sinks.register("jsonl")
class JsonlSink(FileSink):
    """Written line by line, so that a killed run loses nothing."""

    def __init__(self, folder: Path, config: Config, settings: PartSettings | None = None) -> None:
        self._file = AppendedFile(folder / FILE_NAME)

    def write(self, step: int, metrics: Metrics) -> None:
        """Append a line."""
        record = {"step": step, "time": round(time.time(), 3), **metrics}
        self._file.write(_ENCODER.encode(record) + "\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()
