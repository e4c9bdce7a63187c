import json
import logging
import math
import pkgutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import surefoot.telemetry
from surefoot.telemetry.sinks import JsonlSink, Metrics, SinkGroup, TensorBoardSink


class Memory:
    def __init__(self) -> None:
        self.records: list[tuple[int, dict[str, float]]] = []
        self.is_closed = False

    def write(self, step: int, metrics: Metrics) -> None:
        self.records.append((step, dict(metrics)))

    def close(self) -> None:
        self.is_closed = True


class FullDisk(Memory):
    """Takes one record, then fails."""

    def write(self, step: int, metrics: Metrics) -> None:
        if self.records:
            raise OSError("no space left on device")
        super().write(step, metrics)


class Unclosable(Memory):
    def close(self) -> None:
        raise OSError("gone")


def read_lines(path: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_jsonl_holds_every_record_before_it_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    began = time.time()
    sink = JsonlSink(path)
    sink.write(1, {"a/b": 0.5, "c": -2.0})
    sink.write(2, {})
    first, second = read_lines(path)
    sink.close()
    assert first.pop("time") == pytest.approx(began, abs=5.0)
    assert first == {"step": 1, "a/b": 0.5, "c": -2.0}
    assert set(second) == {"step", "time"}


def test_jsonl_appends_when_a_run_resumes(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    for step in (1, 2):
        sink = JsonlSink(path)
        sink.write(step, {"x": 10.0 * step})
        sink.close()
    assert [(line["step"], line["x"]) for line in read_lines(path)] == [(1, 10.0), (2, 20.0)]


def test_tensorboard_reads_back_what_was_written(tmp_path: Path) -> None:
    sink = TensorBoardSink(tmp_path)
    sink.write(100, {"train/loss": 0.5, "time/fps": 1000.0})
    sink.write(200, {"train/loss": 0.25})
    sink.close()
    events = EventAccumulator(str(tmp_path)).Reload()
    assert set(events.Tags()["scalars"]) == {"train/loss", "time/fps"}
    assert [(event.step, event.value) for event in events.Scalars("train/loss")] == [(100, 0.5), (200, 0.25)]
    assert [(event.step, event.value) for event in events.Scalars("time/fps")] == [(100, 1000.0)]


def test_group_leaves_out_what_is_not_finite(tmp_path: Path) -> None:
    memory = Memory()
    group = SinkGroup([memory, JsonlSink(tmp_path / "metrics.jsonl")])
    group.write(1, {"fine": 1.0, "nan": math.nan, "inf": math.inf, "minus": -math.inf})
    group.close()
    assert memory.records == [(1, {"fine": 1.0})]
    assert set(read_lines(tmp_path / "metrics.jsonl")[0]) == {"step", "time", "fine"}


def test_group_drops_a_failing_sink_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    before, failing, after = Memory(), FullDisk(), Memory()
    group = SinkGroup([before, failing, after])
    with caplog.at_level(logging.WARNING, logger="surefoot"):
        for step in range(4):
            group.write(step, {"x": float(step)})
        group.close()
    expected = [(step, {"x": float(step)}) for step in range(4)]
    assert before.records == after.records == expected
    assert failing.records == expected[:1]
    assert [record.getMessage() for record in caplog.records] == [
        "FullDisk failed and is switched off: no space left on device"
    ]
    assert before.is_closed
    assert after.is_closed


def test_group_closes_the_rest_if_one_fails_to_close(caplog: pytest.LogCaptureFixture) -> None:
    after = Memory()
    SinkGroup([Unclosable(), after]).close()
    assert after.is_closed
    assert [record.getMessage() for record in caplog.records] == ["Unclosable failed to close: gone"]


def test_telemetry_never_imports_torch() -> None:
    modules = [f"surefoot.telemetry.{module.name}" for module in pkgutil.iter_modules(surefoot.telemetry.__path__)]
    assert len(modules) >= 3
    code = f"import sys, {', '.join(modules)}; print('torch' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "False\n"
