import io
import logging
import math
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest
from rich.console import Console

from surefoot.telemetry import names
from surefoot.telemetry.alerts import ALERTS
from surefoot.telemetry.console import PlainConsole, build_console
from surefoot.telemetry.live import LiveConsole
from surefoot.telemetry.readings import Pace, duration, sparkline

LOG = logging.getLogger("surefoot")
RECORD = {
    names.STEPS_PER_SECOND: 12_345.0,
    names.ROLLOUT_STEPS_PER_SECOND: 20_123.0,
    names.LEARN_STEPS_PER_SECOND: 31_007.0,
    names.EPISODE_REWARD: 187.32,
    names.EPISODE_LENGTH: 188.4,
    names.APPROX_KL: 0.0083,
    names.CLIP_FRACTION: 0.112,
    names.EXPLAINED_VARIANCE: 0.81,
    names.ENTROPY_LOSS: -0.553,
    names.LEARNING_RATE: 2.5e-4,
}
BUILD_AUTO = """
from surefoot.telemetry.console import build_console
sink = build_console("auto", "T", 10, 0)
sink.close()
print(type(sink).__name__)
"""


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def _logger_is_given_back() -> Iterator[None]:
    before, streams = list(LOG.handlers), (sys.stdout, sys.stderr)
    yield
    assert LOG.handlers == before
    assert (sys.stdout, sys.stderr) == streams


def terminal(width: int = 80) -> Console:
    return Console(record=True, width=width, force_terminal=True, file=io.StringIO(), color_system=None)


def last_panel(console: Console) -> str:
    """The frame drawn last."""
    return "╭" + console.export_text(clear=False).rpartition("╭")[2]


def value_after(label: str, panel: str) -> str:
    found = re.search(rf"{re.escape(label)}\s+(\S+)", panel)
    assert found, f"{label} not in\n{panel}"
    return found[1]


def test_live_shows_every_field() -> None:
    console, clock = terminal(), Clock()
    live = LiveConsole("CartPole-v1 · seed 0", 100_000, console=console, clock=clock)
    clock.now += 21
    live.write(42_000, {**RECORD, names.EVAL_REWARD: 195.2})
    live.close()
    panel = last_panel(console)
    assert "CartPole-v1 · seed 0" in panel
    assert "42,000 / 100,000 steps" in panel
    assert "42.0%" in panel
    assert "elapsed 0:21 · ETA 0:29" in panel
    expected = {
        "steps/s": "12,345",
        "rollout": "20,123",
        "learn ": "31,007",
        "return": "187.32",
        "length": "188.4",
        "KL": "0.0083",
        "clip fraction": "0.112",
        "explained var": "0.810",
        "entropy": "0.553",
        "learning rate": "2.50e-04",
        "last eval": "195.20",
    }
    assert {label: value_after(label, panel) for label in expected} == expected


def test_live_shows_a_dash_for_what_is_missing_and_keeps_the_last_evaluation() -> None:
    console, clock = terminal(), Clock()
    live = LiveConsole("T", 10, console=console, clock=clock)
    assert value_after("return", last_panel(console)) == "\N{EN DASH}"
    clock.now += 1
    live.write(1, {**RECORD, names.EVAL_REWARD: 7.0})
    clock.now += 1
    gone = (names.EPISODE_REWARD, names.EXPLAINED_VARIANCE)
    live.write(2, {name: value for name, value in RECORD.items() if name not in gone})
    live.close()
    panel = last_panel(console)
    assert value_after("return", panel) == value_after("explained var", panel) == "\N{EN DASH}"
    assert value_after("last eval", panel) == "7.00"


def test_live_smooths_speeds() -> None:
    console = terminal()
    live = LiveConsole("T", 10, console=console)
    live.write(1, {names.STEPS_PER_SECOND: 100.0})
    live.write(2, {names.STEPS_PER_SECOND: 200.0})  # 0.7 · 100 + 0.3 · 200
    live.close()
    assert value_after("steps/s", last_panel(console)) == "130"


def test_live_redraws_four_times_a_second_at_most_and_at_the_end() -> None:
    console, clock = terminal(), Clock()
    live = LiveConsole("T", 1000, console=console, clock=clock)
    for step in range(1, 101):
        clock.now += 0.01
        live.write(step, RECORD)
    drawn = console.export_text(clear=False)
    assert drawn.count("╭") == 1 + 4  # at the start, and in one second
    live.close()
    assert "100 / 1,000" in last_panel(console)


@pytest.mark.parametrize("width", [10, 60, 80, 140])
def test_live_fits_the_terminal_with_the_largest_values(width: int) -> None:
    console, clock = terminal(width), Clock()
    huge = dict.fromkeys(RECORD, -1_234_567_890.0)
    live = LiveConsole("a title with [markup] " * 9, 100_000_000, console=console, clock=clock)
    clock.now += 80_000
    live.write(99_999_999, {**huge, names.EVAL_REWARD: 1e30})
    live.close()
    lines = last_panel(console).splitlines()
    assert len(lines) == 11
    if width >= 60:
        # Two columns stay free, and every line ends at the border.
        assert {len(line.rstrip()) for line in lines} == {width - 2}
        assert value_after("return", "\n".join(lines)) == "-1.23e+09"
        assert value_after("eval", "\n".join(lines)) == "1.00e+30"


def test_wide_terminals_show_trends_of_whatever_is_recorded() -> None:
    console, clock = terminal(140), Clock()
    live = LiveConsole("T", 1000, console=console, clock=clock)
    for step, kl in enumerate((0.01, 0.02, math.nan, math.inf, 0.03)):
        live.write(step, {**RECORD, names.APPROX_KL: kl, names.EXPLAINED_VARIANCE: (-1) ** step * 1e308})
    live.close()
    lines = last_panel(console).splitlines()
    assert any("KL" in line and "▁▅█" in line for line in lines)
    assert any("explained var" in line and "█▁█▁█" in line for line in lines)


def test_live_warnings_stand_above_the_panel(capsys: pytest.CaptureFixture[str]) -> None:
    console = terminal()
    live = LiveConsole("T", 10, console=console)
    LOG.warning("observations [low, high] out of bounds")
    print("printed by an env")
    live.close()
    text = console.export_text()
    warning, printed = text.index("WARNING  observations [low, high] out of bounds"), text.index("printed by an env")
    assert text.index("╭") < warning < printed < text.rindex("╭")
    assert capsys.readouterr() == ("", "")  # nothing around the panel's back


def test_live_leaves_its_last_state_and_a_visible_cursor() -> None:
    console = terminal()
    live = LiveConsole("T", 10, console=console)
    live.write(12, RECORD)  # the last rollout overshoots
    live.close()
    live.close()
    assert isinstance(console.file, io.StringIO)
    written = console.file.getvalue()
    assert written.rindex("\x1b[?25h") > written.rindex("12 / 10")
    assert "100.0%" in last_panel(console)
    assert "ETA 0:00" in last_panel(console)


@pytest.mark.parametrize(
    ("pace", "percent", "eta_s"),
    [
        (Pace(0, 100, 0, 5.0), 0.0, None),
        (Pace(25, 100, 0, 5.0), 25.0, 15.0),
        (Pace(60, 100, 50, 5.0), 60.0, 20.0),  # resumed: 10 steps in 5 s, 40 to go
        (Pace(50, 100, 50, 5.0), 50.0, None),
        (Pace(100, 100, 0, 5.0), 100.0, 0.0),
        (Pace(130, 100, 0, 5.0), 100.0, 0.0),
        (Pace(0, 0, 0, 0.0), 0.0, None),
    ],
)
def test_pace(pace: Pace, percent: float, eta_s: float | None) -> None:
    assert (pace.percent, pace.eta_s) == (percent, eta_s)


def test_duration() -> None:
    seconds = (None, 0, 59.6, 3599, 3600, 100_000, 200_000)
    assert [duration(s) for s in seconds] == ["\N{EN DASH}", "0:00", "1:00", "59:59", "1:00:00", "27:46:40", "2d 7h"]


def test_sparkline() -> None:
    assert sparkline([], 8) == "\N{EN DASH}"
    assert sparkline([5.0, 5.0], 8) == "▁▁"
    assert sparkline([float(level) for level in range(8)], 8) == "▁▂▃▄▅▆▇█"
    assert sparkline([0.0, 0.0, 7.0, 7.0, 3.0, 3.0], 3) == "▁█▄"
    assert len(sparkline([float(step % 13) for step in range(1001)], 60)) == 60


def plain_lines(stream: io.StringIO) -> list[str]:
    return stream.getvalue().splitlines()


def test_plain_line() -> None:
    stream, clock = io.StringIO(), Clock()
    plain = PlainConsole(100_000, stream=stream, clock=clock)
    clock.now += 21
    plain.write(42_000, {**RECORD, names.EVAL_REWARD: 195.2})
    plain.close()
    assert plain_lines(stream) == [
        " 42,000/100,000  42.0%  ETA    0:29  fps  12,345  return  187.32  length   188.4  KL  0.0083"
        "  EV   0.810  entropy   0.553  eval  195.20"
    ]


def test_plain_lines_are_aligned_ascii_whatever_is_missing() -> None:
    stream = io.StringIO()
    plain = PlainConsole(100_000, stream=stream, min_interval_s=0.0)
    plain.write(0, {})
    plain.write(2_048, {**RECORD, names.EPISODE_REWARD: -9.5})
    plain.write(100_352, RECORD)
    plain.close()
    lines = plain_lines(stream)
    assert len({line.index("entropy") for line in lines}) == 1
    assert all(line.isascii() and line.isprintable() for line in lines)
    assert "return       -" in lines[0]
    assert "100.0%" in lines[2]


def test_plain_prints_the_first_then_seldom_then_evaluations_and_the_last() -> None:
    stream, clock = io.StringIO(), Clock()
    plain = PlainConsole(100, stream=stream, min_interval_s=2.0, clock=clock)
    for step in range(1, 8):
        plain.write(step, RECORD | ({names.EVAL_REWARD: 1.0} if step == 4 else {}))
        clock.now += 0.9
    assert [int(line.split("/")[0]) for line in plain_lines(stream)] == [1, 4, 7]
    plain.write(8, RECORD)
    plain.close()
    plain.close()
    assert [int(line.split("/")[0]) for line in plain_lines(stream)] == [1, 4, 7, 8]


def test_plain_warnings_go_to_stderr_until_closed(capsys: pytest.CaptureFixture[str]) -> None:
    plain = PlainConsole(100)
    LOG.warning("careful")
    plain.write(1, RECORD)
    plain.close()
    out, err = capsys.readouterr()
    assert err == "WARNING: careful\n"
    assert out.startswith("  1/100   1.0%")


def test_build_console_off_and_by_name() -> None:
    assert build_console("off", "T", 10, 0) is None
    plain = build_console("plain", "T", 10, 0)
    assert isinstance(plain, PlainConsole)
    plain.close()


def built_on_terminal(**environment: str) -> str:
    """What a process on a real pseudo-terminal shows."""
    leader, follower = pty.openpty()
    settings = {"TERM": "xterm", "COLUMNS": "80", "PYTHONIOENCODING": "utf-8"} | environment
    process = subprocess.Popen([sys.executable, "-c", BUILD_AUTO], stdout=follower, env={**os.environ, **settings})
    os.close(follower)
    shown = b""
    try:
        while chunk := os.read(leader, 4096):
            shown += chunk
    except OSError:  # what Linux says when the other end is closed
        pass
    finally:
        os.close(leader)
    assert process.wait(timeout=30) == 0
    return shown.decode()


def test_auto_is_live_on_a_terminal_only() -> None:
    shown = built_on_terminal()
    assert "0 / 10 steps" in shown
    assert "LiveConsole" in shown
    assert "\x1b[?25h" in shown
    assert built_on_terminal(TERM="dumb").split() == ["PlainConsole"]
    assert built_on_terminal(PYTHONIOENCODING="latin-1").split() == ["PlainConsole"]


def test_auto_is_plain_in_a_pipe_even_if_color_is_forced() -> None:
    piped = subprocess.run(
        [sys.executable, "-c", BUILD_AUTO],
        env={**os.environ, "FORCE_COLOR": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert piped.stdout.split() == ["PlainConsole"]


ALERTING = {**RECORD, "warn/kl_high": 1.0, "warn/entropy_collapse": 1.0, "warn/std_at_floor": 0.0, "warn/mine": 1.0}


def test_live_shows_alerts_while_they_are_raised() -> None:
    console, clock = terminal(), Clock()
    live = LiveConsole("T", 10, console=console, clock=clock)
    clock.now += 1
    live.write(1, ALERTING)
    assert "⚠ KL high · entropy collapsed · mine" in last_panel(console)
    assert "std at its floor" not in last_panel(console)
    clock.now += 1
    live.write(2, {**RECORD, "warn/kl_high": 0.0})
    live.close()
    assert "⚠" not in last_panel(console)


@pytest.mark.parametrize("width", [24, 60, 140])
def test_live_wraps_many_alerts(width: int) -> None:
    console, clock = terminal(width), Clock()
    live = LiveConsole("T", 10, console=console, clock=clock)
    clock.now += 1
    live.write(1, RECORD | {alert.key: 1.0 for alert in ALERTS})
    live.close()
    panel = last_panel(console)
    assert {len(line) for line in panel.splitlines()} == {width - 2}
    shown = " ".join(panel.replace("│", " ").split())
    assert all(alert.label in shown for alert in ALERTS)


def test_plain_shows_alerts_while_they_are_raised() -> None:
    stream, clock = io.StringIO(), Clock()
    plain = PlainConsole(10, stream=stream, clock=clock)
    plain.write(1, ALERTING)
    clock.now += 3
    plain.write(2, {**RECORD, "warn/kl_high": 0.0})
    plain.close()
    first, second = stream.getvalue().splitlines()
    assert first.endswith("  ALERT: KL high, entropy collapsed, mine")
    assert "ALERT" not in second
    assert stream.getvalue().isascii()
