import json
import time
from pathlib import Path

import pytest

from surefoot.settings.config import Config
from surefoot.telemetry.sinks.jsonl import JsonlSink


def read_lines(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]


def test_jsonl_holds_every_record_before_it_is_closed(tmp_path: Path) -> None:
    began = time.time()
    sink = JsonlSink(tmp_path, Config())
    sink.write(1, {"a/b": 0.5, "c": -2.0})
    sink.write(2, {})
    first, second = read_lines(tmp_path)
    sink.close()
    assert first.pop("time") == pytest.approx(began, abs=5.0)
    assert first == {"step": 1, "a/b": 0.5, "c": -2.0}
    assert set(second) == {"step", "time"}


def test_jsonl_appends_when_a_run_resumes(tmp_path: Path) -> None:
    for step in (1, 2):
        sink = JsonlSink(tmp_path, Config())
        sink.write(step, {"x": 10.0 * step})
        sink.close()
    assert [(line["step"], line["x"]) for line in read_lines(tmp_path)] == [(1, 10.0), (2, 20.0)]
