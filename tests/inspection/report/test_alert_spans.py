"""From `warn/` metrics to stretches of the run."""

from surefoot.inspection.report.reported_run import AlertSpan, alert_spans
from surefoot.telemetry.alerts import ALERTS
from tests.inspection.report.written_runs import write_run


def spans(tmp_path, *warnings):
    lines = [{"step": 10 * (index + 1), **warning} for index, warning in enumerate(warnings)]
    return alert_spans(write_run(tmp_path / "run", lines))


ON, OFF = {"warn/kl_high": 1.0}, {"warn/kl_high": 0.0}


def test_an_alert_reaches_from_the_record_before_to_its_last(tmp_path):
    assert spans(tmp_path, {}, ON, ON, OFF, {}) == [AlertSpan("kl_high", 10, 30)]


def test_raised_in_the_first_record_and_never_cleared(tmp_path):
    assert spans(tmp_path, ON, ON) == [AlertSpan("kl_high", 0, 20)]


def test_raised_twice(tmp_path):
    assert spans(tmp_path, ON, OFF, {}, ON, OFF) == [AlertSpan("kl_high", 0, 10), AlertSpan("kl_high", 30, 40)]


def test_a_record_without_it_ends_it_too(tmp_path):
    """A run that was killed and resumed forgets what was raised."""
    assert spans(tmp_path, ON, {}, {}) == [AlertSpan("kl_high", 0, 10)]


def test_several_alerts_are_kept_apart(tmp_path):
    found = spans(tmp_path, ON, ON | {"warn/odd_thing": 1.0}, {"warn/odd_thing": 1.0})
    assert found == [AlertSpan("kl_high", 0, 20), AlertSpan("odd_thing", 10, 30)]


def test_known_alerts_have_their_words_and_others_their_name():
    alert = ALERTS[0]
    assert (AlertSpan(alert.name, 0, 1).label, AlertSpan(alert.name, 0, 1).meaning) == (alert.label, alert.meaning)
    assert (AlertSpan("odd_thing", 0, 1).label, AlertSpan("odd_thing", 0, 1).meaning) == ("odd thing", "")
