"""A group of sinks; a failing sink does not stop training."""

import logging
import math
from collections.abc import Callable, Sequence
from typing import Any

from surefoot.output.failures import brief, let_interrupts_through
from surefoot.telemetry.sinks import Metrics, Sink, Video, close_quietly

_log = logging.getLogger("surefoot")


class SinkGroup:
    """Writes to all sinks; a sink that fails is removed with one warning, and training continues."""

    def __init__(self, sinks: Sequence[Sink]) -> None:
        self._sinks = list(sinks)

    def write(self, step: int, metrics: Metrics) -> None:
        """Write one record to every sink, without the values that are not finite."""
        finite = {name: value for name, value in metrics.items() if math.isfinite(value)}
        for sink in list(self._sinks):
            self._call(sink, sink.write, step, finite)

    def write_video(self, step: int, video: Video) -> None:
        """Give a video to every sink that takes videos."""
        for sink in list(self._sinks):
            if takes := getattr(sink, "write_video", None):
                self._call(sink, takes, step, video)

    def _call(self, sink: Sink, method: Callable[..., None], *arguments: Any) -> None:
        try:
            method(*arguments)
        except BaseException as error:  # a sink may even call sys.exit
            let_interrupts_through(error)
            self._sinks.remove(sink)
            _log.warning("%s failed and was disabled: %s", type(sink).__name__, _text(error))
            close_quietly(sink)

    def close(self) -> None:
        """Close every sink."""
        for sink in self._sinks:
            try:
                sink.close()
            except BaseException as error:
                let_interrupts_through(error)
                _log.warning("%s failed to close: %s", type(sink).__name__, _text(error))


def _text(error: BaseException) -> str:
    return str(error) if isinstance(error, Exception) and str(error) else brief(error)
