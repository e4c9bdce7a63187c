"""A group of sinks shields the training from one that fails."""

import contextlib
import logging
import math
from collections.abc import Sequence

from surefoot.telemetry.sinks import Metrics, Sink

_log = logging.getLogger("surefoot")


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
