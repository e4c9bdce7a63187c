import json
import logging
import math
from pathlib import Path

import pytest

from surefoot.settings.config import Config
from surefoot.telemetry.sink_group import SinkGroup
from surefoot.telemetry.sinks import Metrics, Video
from surefoot.telemetry.sinks.jsonl import JsonlSink


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


def test_group_leaves_out_what_is_not_finite(tmp_path: Path) -> None:
    memory = Memory()
    group = SinkGroup([memory, JsonlSink(tmp_path, Config())])
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
        "FullDisk failed and was disabled: no space left on device"
    ]
    assert before.is_closed
    assert after.is_closed


def test_group_closes_the_rest_if_one_fails_to_close(caplog: pytest.LogCaptureFixture) -> None:
    after = Memory()
    SinkGroup([Unclosable(), after]).close()
    assert after.is_closed
    assert [record.getMessage() for record in caplog.records] == ["Unclosable failed to close: gone"]


class Cinema(Memory):
    def __init__(self) -> None:
        super().__init__()
        self.videos: list[int] = []

    def write_video(self, step: int, video: Video) -> None:
        self.videos.append(step)
        if step > 1:
            raise OSError("no seats left")


def test_videos_go_to_the_sinks_that_take_them(caplog: pytest.LogCaptureFixture) -> None:
    cinema, plain = Cinema(), Memory()
    group = SinkGroup([plain, cinema])
    for step in (1, 2, 3):
        group.write_video(step, Video(Path("policy.mp4"), b"", (1, 1)))
        group.write(step, {"x": 1.0})
    assert cinema.videos == [1, 2], "disabled after it failed"
    assert len(plain.records) == 3
    assert [record.getMessage() for record in caplog.records] == ["Cinema failed and was disabled: no seats left"]
