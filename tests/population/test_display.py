"""What a population shows: a table of all members on a terminal, plain lines elsewhere."""

import io

import pytest
from rich.console import Console

from surefoot.population.decisions import Choice
from surefoot.population.display import LiveDisplay, PlainDisplay, build_display
from surefoot.population.log import Entry, Outcome
from tests.population.populations import small_plan

VALUES = {"optimizer.lr": 0.00123, "ppo.gamma": 0.95, "ppo.entropy_coef": 0.01}
CHANGED = {**VALUES, "optimizer.lr": 0.00777}


def happen(display: PlainDisplay) -> None:
    display.begin_round(2, [Choice(0, VALUES), Choice(0, CHANGED), Choice(2, VALUES)])
    display.progress(0, {"iteration": 3, "step": 12_345, "reward": 17.25})
    display.progress(2, {"is_evaluated": True})
    display.died(2, "its process was ended by signal 9")
    display.finished(1, Outcome(123.5, [100.0, 150.0], "abc", 99, False, {}, ""))
    display.finished(2, Outcome.failed("member 02: NaN"))
    display.decided([Entry(2, 2, None, None, "", 0, VALUES, {}, 1, CHANGED, "member 02: NaN")])
    display.close()


def test_plain_lines(capsys):
    happen(build_display(small_plan(), "title"))
    assert capsys.readouterr().out.splitlines() == [
        "round 2  member 02  restarted: its process was ended by signal 9",
        "round 2  member 01  score 123.5 (100 to 150)",
        "round 2  member 02  failed: member 02: NaN",
        "round 2  member 02 <- 01  optimizer.lr 0.00777, ppo.gamma 0.95, ppo.entropy_coef 0.01",
    ]


@pytest.mark.parametrize(("width", "hidden"), [(60, "lr, entropy_coef, gamma"), (70, "entropy_coef, gamma"), (140, "")])
def test_numbers_are_whole_in_every_terminal(width, hidden):
    display = LiveDisplay(small_plan(), "title", Console(file=io.StringIO(), force_terminal=True, width=width))
    happen(display)
    display._rows[1] |= {"what": "is evaluated", "step": 10_003_520}
    shown = io.StringIO()
    Console(file=shown, width=width).print(display._table())
    assert max(len(line) for line in shown.getvalue().splitlines()) <= width
    assert "…" not in shown.getvalue()
    assert "10,003,520" in shown.getvalue()
    assert ("0.00777" in shown.getvalue()) is (width > 60)
    assert (f"not shown for lack of room: {hidden}" in shown.getvalue()) is bool(hidden)


def test_the_table_has_all_members():
    screen = io.StringIO()
    happen(LiveDisplay(small_plan(), "title", Console(file=screen, force_terminal=True, width=120)))
    last = screen.getvalue().rpartition("round 2")[2]
    for shown in ("trains", "12,345", "17.25", "done", "123.5", "failed", "0.00123", "0.00777", "00", "01", "02"):
        assert shown in last
    assert "restarted: its process was ended by signal 9" in screen.getvalue()
