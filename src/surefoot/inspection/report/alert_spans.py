"""When alerts were active, from the `warn/` metrics."""

from dataclasses import dataclass

from surefoot.inspection.run_record import RunRecord
from surefoot.telemetry.alerts import ALERTS
from surefoot.telemetry.names import ALERT_PREFIX

_KNOWN = {alert.name: alert for alert in ALERTS}


@dataclass(frozen=True)
class AlertSpan:
    """An alert that was active between two steps."""

    name: str
    start: int
    end: int

    @property
    def label(self) -> str:
        """The label of the live display; for an unknown alert, its name."""
        return _KNOWN[self.name].label if self.name in _KNOWN else self.name.replace("_", " ")

    @property
    def meaning(self) -> str:
        """What the alert means; empty for an unknown alert."""
        return _KNOWN[self.name].meaning if self.name in _KNOWN else ""


def alert_spans(run: RunRecord) -> list[AlertSpan]:
    """Every interval in which an alert was active, sorted by name and time.

    A record describes the iteration that ends at its step, so a span begins at the record before: even an alert of a
    single record has a width. It ends with the last active record: a value of 0 or a missing value clears it.
    """
    names = sorted({name for record in run.records for name in record if name.startswith(ALERT_PREFIX)})
    return [span for name in names for span in _spans(run, name)]


def _spans(run: RunRecord, name: str) -> list[AlertSpan]:
    spans: list[AlertSpan] = []
    began: int | None = None
    before = last = 0
    for record in run.records:
        is_active = record.get(name, 0) > 0
        if is_active:
            began = before if began is None else began
            last = int(record["step"])
        elif began is not None:
            spans.append(AlertSpan(name.removeprefix(ALERT_PREFIX), began, last))
            began = None
        before = int(record["step"])
    if began is not None:
        spans.append(AlertSpan(name.removeprefix(ALERT_PREFIX), began, last))
    return spans
