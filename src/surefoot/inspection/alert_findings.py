"""Findings from alerts: those recorded during the run, and those found by replaying its records."""

import statistics
from dataclasses import dataclass

from surefoot.inspection.findings import Evidence, Finding, Severity
from surefoot.inspection.preset_advice import advised
from surefoot.inspection.run_record import RunRecord
from surefoot.settings.config import Config
from surefoot.telemetry import names
from surefoot.telemetry.alerts import ALERTS, Alert
from surefoot.telemetry.records import Record
from surefoot.telemetry.watch import AlertWatch, shown


@dataclass(frozen=True)
class Span:
    """From the step at which an alert was raised to the step at which it was cleared; None if it never was."""

    begin: int
    end: int | None

    def covers(self, step: int) -> bool:
        """Whether the alert was active at a step."""
        return step >= self.begin and (self.end is None or step <= self.end)


def alert_findings(run: RunRecord, config: Config) -> list[Finding]:
    """One finding per alert that was raised at least once."""
    replayed = _replayed_spans(run, config)
    found = []
    for alert in ALERTS:
        spans = _recorded_spans(run, alert) or replayed[alert.name]
        if spans:
            found.append(_finding(run, config, alert, spans))
    return found


def _recorded_spans(run: RunRecord, alert: Alert) -> list[Span]:
    """Every record lists the active alerts; an alert that is missing is over, which includes restarts of the run."""
    spans: list[Span] = []
    for record in run.records:
        step, is_raised = int(record["step"]), record.get(alert.key, 0) > 0
        is_open = bool(spans) and spans[-1].end is None
        if is_raised and not is_open:
            spans.append(Span(step, None))
        elif is_open and not is_raised:
            spans[-1] = Span(spans[-1].begin, step)
    return spans


def _replayed_spans(run: RunRecord, config: Config) -> dict[str, list[Span]]:
    spans: dict[str, list[Span]] = {alert.name: [] for alert in ALERTS}
    watch = AlertWatch(config, stride=config.log.log_every)
    for record in run.records:
        for change in watch.observe(record):
            step, of_alert = int(record["step"]), spans[change.alert.name]
            if change.is_raised:
                of_alert.append(Span(step, None))
            else:
                of_alert[-1] = Span(of_alert[-1].begin, step)
    return spans


def _finding(run: RunRecord, config: Config, alert: Alert, spans: list[Span]) -> Finding:
    evidence = _counted(run, alert) or _measured(_worst(run, config, alert, spans), alert)
    is_over = spans[-1].end is not None
    severity: Severity = "low" if is_over else "high" if alert.is_grave else "medium"
    remedies = advised(alert.remedies(config, _typical(run, alert, spans)), config)
    return Finding(alert.name, severity, alert.label, alert.meaning, evidence, _when(spans), remedies)


def _counted(run: RunRecord, alert: Alert) -> tuple[Evidence, ...]:
    """For events: the total number and the step of the last one."""
    happened = [(step, count) for step, count in run.series(alert.evidence[0]) if count > 0]
    if alert.evidence[0] not in names.COUNTS or not happened:
        return ()
    return (Evidence(alert.evidence[0], sum(count for _, count in happened), happened[-1][0]),)


def _measured(record: Record, alert: Alert) -> tuple[Evidence, ...]:
    return tuple(Evidence(name, value, int(record["step"])) for name, value in shown(alert, record).items())


def _worst(run: RunRecord, config: Config, alert: Alert, spans: list[Span]) -> Record:
    """The record with the worst level while the alert was active, or in the window that raised it."""
    gauge, limits = alert.gauge(), alert.limits(config)
    sign = 1 if limits.bad > limits.good else -1
    levels = [(gauge(record), record) for record in run.records]
    leading = _with_windows(run, alert, spans)
    raised = [
        (sign * level, record)
        for level, record in levels
        if level is not None and any(span.covers(int(record["step"])) for span in leading)
    ]
    return max(raised, key=lambda pair: pair[0])[1] if raised else run.records[-1]


def _with_windows(run: RunRecord, alert: Alert, spans: list[Span]) -> list[Span]:
    """The spans with the windows that raised the alert."""
    steps = [int(record["step"]) for record in run.records]
    return [Span(steps[max(0, steps.index(span.begin) - alert.window + 1)], span.end) for span in spans]


def _typical(run: RunRecord, alert: Alert, spans: list[Span]) -> Record:
    """The median of each metric while the alert was active, or in the window that raised it."""
    leading = _with_windows(run, alert, spans)
    records = [record for record in run.records if any(span.covers(int(record["step"])) for span in leading)]
    found = dict.fromkeys(name for record in records for name in record)
    return {name: statistics.median(record[name] for record in records if name in record) for name in found}


def _when(spans: list[Span]) -> str:
    last = spans[-1]
    times = f"raised {len(spans)} times, most recently" if len(spans) > 1 else "raised"
    ending = "still active in the last record" if last.end is None else f"cleared at step {last.end:,}"
    return f"{times} at step {last.begin:,}, {ending}"
