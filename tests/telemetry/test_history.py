"""A resumed run continues its display and its alerts from the records of earlier processes."""

import io
import json
from pathlib import Path

from rich.console import Console

from surefoot.settings.config import Config
from surefoot.telemetry import names
from surefoot.telemetry.console import ProgressLine
from surefoot.telemetry.live import LiveConsole
from surefoot.telemetry.records import NO_HISTORY, History, read_history
from surefoot.telemetry.watch import AlertWatch


def written(path: Path, *records: dict[str, float]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records) + '{"step": 9')
    return path


def record(step: int, elapsed_s: float, reward: float, std: float = 1.0) -> dict[str, float]:
    return {"step": step, names.ELAPSED: elapsed_s, names.EPISODE_REWARD: reward, names.STD: std}


def test_times_of_processes_are_added_up_and_later_records_left_out(tmp_path) -> None:
    records = (record(10, 5.0, 1.0), record(20, 9.0, 2.0), record(30, 4.0, 3.0), record(40, 7.0, 4.0))
    path = written(tmp_path / "metrics.jsonl", *records)
    assert read_history(path, 30) == History(13.0, (1.0, 2.0, 3.0), records[0])
    assert read_history(path, 0) == NO_HISTORY
    assert read_history(path, 5) == NO_HISTORY
    assert read_history(tmp_path / "missing.jsonl", 30) == NO_HISTORY


def test_the_display_shows_them() -> None:
    console = Console(record=True, width=80, force_terminal=True, file=io.StringIO(), color_system=None)
    live = LiveConsole("T", 100, 50, console, clock=lambda: 0.0, history=History(3600.0, (1.0, 8.0)))
    live.write(60, {names.EPISODE_REWARD: 4.0})
    live.close()
    panel = console.export_text().rpartition("╭")[2]
    assert "elapsed 1:00:00" in panel
    assert "return ▁█▄" in panel


def test_a_line_at_any_width() -> None:
    for width, has_title, has_speed in ((60, False, False), (80, False, True), (140, True, True)):
        console = Console(record=True, width=width, force_terminal=True, file=io.StringIO(), color_system=None)
        line = ProgressLine("CartPole-v1 · seed 1", 100_000, 0, console, clock=lambda: 0.0)
        line.write(
            50_000, {names.EPISODE_REWARD: -123.456, names.STEPS_PER_SECOND: 12_345.0, names.ALERT_PREFIX + "x": 1}
        )
        line.close()
        last = console.export_text().rpartition("ETA \N{EN DASH}")[2]  # behind the first picture
        last, alerts = last.rstrip().splitlines()
        assert ("CartPole-v1" in last, "12,345 steps/s" in last) == (has_title, has_speed)
        assert "━━━━━" in last
        assert "50%  50,000/100,000  return -123.46" in last
        assert len(last) <= width
        assert alerts == "⚠ x"


def test_exploration_is_compared_with_the_first_record_of_the_run() -> None:
    resumed, new = AlertWatch(Config()), AlertWatch(Config())
    resumed.recall(record(10, 1.0, 1.0, std=1.0))
    for watch, is_raised in ((resumed, True), (new, False)):
        for _ in range(10):
            watch.observe({names.STD: 0.01})
        assert ("entropy_collapse" in [alert.name for alert in watch.raised]) is is_raised
