"""Hysteresis on made-up series: raised by what lasts, cleared by what has clearly been over for a while."""

import math

import pytest

from surefoot.settings.config import Config
from surefoot.telemetry.alerts import Alert, Limits
from surefoot.telemetry.gauges import plain
from surefoot.telemetry.watch import AlertWatch

HIGH = Alert(
    "high", ("x", "y"), "x high", "x is high", lambda: plain("x"), lambda config: Limits(10, 6), lambda config: [],
    window=5, calm=4,
)  # fmt: skip
LOW = Alert(
    "low", ("x",), "x low", "x is low", lambda: plain("x"), lambda config: Limits(-10, -6), lambda config: [],
    window=5, calm=4,
)  # fmt: skip
EVENT = Alert(
    "event", ("x",), "x happened", "x happened", lambda: plain("x"), lambda config: Limits(1, 0), lambda config: [],
    window=1, calm=4,
)  # fmt: skip


def changes(alert: Alert, values: list[float | None], stride: int = 1) -> list[tuple[int, bool]]:
    """(index, raised or cleared) over a series; None is a record without the metric."""
    watch = AlertWatch(Config(), stride, [alert])
    found = []
    for index, value in enumerate(values):
        for change in watch.observe({} if value is None else {"x": value}):
            found.append((index, change.is_raised))
    return found


def test_raised_when_it_holds_in_most_of_the_window():
    assert changes(HIGH, [20] * 4) == []
    assert changes(HIGH, [20] * 5) == [(4, True)]
    assert changes(HIGH, [0, 0, 20, 20, 20]) == [(4, True)]
    assert changes(HIGH, [0, 20, 0, 20, 0, 20, 20]) == [(5, True)]


def test_an_outlier_raises_nothing():
    assert changes(HIGH, [0, 0, 1000, 0, 0, 1000, 0, 0, 1000, 0, 0]) == []


def test_the_limit_itself_is_bad():
    assert changes(HIGH, [10] * 5) == [(4, True)]
    assert changes(HIGH, [9.999] * 50) == []


def test_cleared_only_when_it_has_been_good_for_a_while():
    raised = [20.0] * 5
    assert changes(HIGH, raised + [5] * 3) == [(4, True)]
    assert changes(HIGH, raised + [5] * 4) == [(4, True), (8, False)]
    assert changes(HIGH, [*raised, 5, 5, 5, 7, 5, 5, 5]) == [(4, True)], "7 is neither good nor bad"


def test_no_flapping_between_the_limits():
    """A value that swings around the threshold raises the alert once."""
    swing = [9.0, 11.0, 11.0] * 100
    assert changes(HIGH, swing) == [(4, True)]
    assert changes(HIGH, [20] * 5 + [7, 9] * 100) == [(4, True)]


def test_raised_again_only_by_a_whole_window():
    again = [20] * 5 + [0] * 4
    assert changes(HIGH, again + [20] * 4) == [(4, True), (8, False)]
    assert changes(HIGH, again + [20] * 5) == [(4, True), (8, False), (13, True)]


def test_low_is_the_mirror_of_high():
    for values in ([20] * 5, [20] * 5 + [5] * 4, [0, 0, 20, 20, 20], [20] * 5 + [7, 9] * 9):
        assert changes(LOW, [-value for value in values]) == changes(HIGH, values)


def test_an_event_is_raised_at_once_and_cleared_when_it_has_not_come_again():
    assert changes(EVENT, [0, 0, 1, 0, 0, 0, 0, 0]) == [(2, True), (6, False)]
    assert changes(EVENT, [1, 0, 0, 0, 2, 0, 0, 0, 0]) == [(0, True), (8, False)]


def test_what_is_missing_changes_nothing():
    assert changes(HIGH, [20, None, 20, None, 20, 20, 20]) == [(6, True)]
    assert changes(HIGH, [20] * 5 + [5, None, 5, None, 5, 5]) == [(4, True), (10, False)]
    assert changes(HIGH, [math.nan] * 20) == []


def test_records_that_are_farther_apart_need_fewer():
    assert changes(HIGH, [20] * 3, stride=2) == [(2, True)]
    assert changes(HIGH, [20] * 3, stride=100) == [(2, True)], "a median of fewer than 3 would follow an outlier"
    assert changes(EVENT, [1], stride=100) == [(0, True)]


def test_a_change_has_its_evidence_and_the_watch_knows_what_is_raised():
    watch = AlertWatch(Config(), alerts=[HIGH, EVENT])
    for _ in range(4):
        watch.observe({"x": 0.0})
    assert watch.raised == []
    (change,) = watch.observe({"x": 3.0, "z": 1.0})
    assert (change.alert, change.is_raised, change.values) == (EVENT, True, {"x": 3.0})
    assert watch.raised == [EVENT]


@pytest.mark.parametrize("stride", [1, 10])
def test_every_alert_watches_a_run_from_nothing(stride):
    """Records without any metric, as a hook of somebody else may write them."""
    watch = AlertWatch(Config(), stride)
    assert all(watch.observe({}) == [] for _ in range(50))
