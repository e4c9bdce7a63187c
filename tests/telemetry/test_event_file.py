import math
import struct
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary

from surefoot.native.kernels import readable_only
from surefoot.telemetry.event_file import EventFile, file_version, image, scalars, session_start

METRICS = {"train/loss": 0.1, "": -2.0, "env/Länge" * 20: 1e39, "time/total_steps": 2.0**40}
CONTENTS = [
    (0, file_version(), {"file_version": "brain.Event:2"}),
    (127, session_start(), {"session_log": SessionLog(status=SessionLog.START)}),
    (
        128,
        scalars(METRICS),
        {"summary": Summary(value=[Summary.Value(tag=name, simple_value=one) for name, one in METRICS.items()])},
    ),
    (
        2**40,
        image("video/policy", b"GIF" * 1000, 640, 300),
        {
            "summary": Summary(
                value=[
                    Summary.Value(
                        tag="video/policy",
                        image=Summary.Image(height=300, width=640, colorspace=3, encoded_image_string=b"GIF" * 1000),
                    )
                ]
            )
        },
    ),
]


@pytest.mark.parametrize("is_core", [True, False], ids=["core", "reference"])
def test_tensorboard_reads_the_events_that_its_own_classes_describe(tmp_path: Path, is_core: bool) -> None:
    file = EventFile(tmp_path / "events.out.tfevents.1")
    for step, content, _ in CONTENTS:
        if is_core:
            file.add(1.5, step, content)
        else:
            with readable_only():
                file.add(1.5, step, content)
    read = [Event.FromString(record) for record in RawEventFileLoader(str(tmp_path / "events.out.tfevents.1")).Load()]
    assert read == [Event(wall_time=1.5, step=step, **fields) for step, _, fields in CONTENTS]
    assert math.isinf(read[2].summary.value[2].simple_value), "larger than any float32"
    file.close()


def test_tensorboard_finds_damage(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1"
    file = EventFile(path)
    file.add(1.5, 10, scalars({"x": 1.0}))
    file.close()
    data = bytearray(path.read_bytes())
    data[data.index(struct.pack("<f", 1.0))] ^= 1
    path.write_bytes(data)
    assert list(RawEventFileLoader(str(path)).Load()) == []
