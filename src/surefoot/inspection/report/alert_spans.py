"""When alerts were active, from the `warn/` metrics."""

from dataclasses import dataclass

from surefoot.inspection.run_record import RunRecord

PREFIX = "warn/"


@dataclass(frozen=True)
class AlertSpan:
    """An alert that was active between two steps."""

    name: str
    start: int
    end: int


def alert_spans(run: RunRecord) -> list[AlertSpan]:
    """Every stretch in which an alert was active, by name and then by time.

    A record at a step is about the iteration that led to it, so a span begins at the record before: even an alert of a
    single record has a width. It ends with the last active record: 0 clears it, and so does a record without it.
    """
    names = sorted({name for record in run.records for name in record if name.startswith(PREFIX)})
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
            spans.append(AlertSpan(name.removeprefix(PREFIX), began, last))
            began = None
        before = int(record["step"])
    if began is not None:
        spans.append(AlertSpan(name.removeprefix(PREFIX), began, last))
    return spans
