from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from surefoot.settings.config import Config
from surefoot.telemetry.sinks import Video
from surefoot.telemetry.sinks.tensorboard import TensorBoardSink


def scalars(folder: Path, tag: str) -> list[tuple[int, float]]:
    return [(event.step, event.value) for event in EventAccumulator(str(folder)).Reload().Scalars(tag)]


def test_tensorboard_reads_back_what_was_written(tmp_path: Path) -> None:
    sink = TensorBoardSink(tmp_path, Config())
    sink.write(100, {"train/loss": 0.5, "time/fps": 1000.0})
    sink.write(200, {"train/loss": 0.25})
    assert scalars(tmp_path, "train/loss") == [(100, 0.5), (200, 0.25)], "there before it is closed"
    sink.close()
    assert set(EventAccumulator(str(tmp_path)).Reload().Tags()["scalars"]) == {"train/loss", "time/fps"}
    assert scalars(tmp_path, "time/fps") == [(100, 1000.0)]


def test_a_resumed_run_is_one_curve(tmp_path: Path) -> None:
    for step in (100, 200):
        sink = TensorBoardSink(tmp_path, Config())
        sink.write(step, {"x": 1.0})
        sink.close()
    assert len(list(tmp_path.glob("events.out.tfevents.*"))) == 2
    assert scalars(tmp_path, "x") == [(100, 1.0), (200, 1.0)]


def test_a_video_is_an_image_that_moves(tmp_path: Path) -> None:
    sink = TensorBoardSink(tmp_path, Config())
    sink.write_video(300, Video(tmp_path / "step_300.mp4", b"GIF89a...", (24, 16)))
    sink.close()
    (image,) = EventAccumulator(str(tmp_path)).Reload().Images("video/policy")
    assert (image.step, image.width, image.height, image.encoded_image_string) == (300, 24, 16, b"GIF89a...")
