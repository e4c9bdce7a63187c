"""Video files are complete, or not there at all."""

import importlib.util
from pathlib import Path

import av
import pytest
from PIL import Image

from surefoot.errors import VideoError
from surefoot.machine.extras import install_hint
from surefoot.watching.target import check_video_file
from surefoot.watching.video_file import MOST_FRAMES, SIDE, Preview, write_video

COLORS = [(200, 30, 30), (30, 200, 30), (30, 30, 200)]


def frames(count=3, size=(64, 48)):
    return (Image.new("RGB", size, COLORS[number % 3]) for number in range(count))


def test_an_mp4_has_every_frame(tmp_path):
    path = tmp_path / "new" / "film.mp4"
    write_video(path, frames(), 12.5)
    with av.open(str(path)) as file:
        (stream,) = file.streams
        assert (stream.codec.name, stream.pix_fmt, stream.average_rate) == ("h264", "yuv420p", 12.5)
        found = [frame.to_image() for frame in file.decode(video=0)]
    assert [image.size for image in found] == [(64, 48)] * 3
    for image, color in zip(found, COLORS, strict=True):
        assert image.getpixel((30, 20)) == pytest.approx(color, abs=12)


def test_a_gif_has_every_frame_and_its_time(tmp_path):
    path = tmp_path / "film.gif"
    write_video(path, frames(size=(960, 480)), 12.5)
    with Image.open(path) as gif:
        assert (gif.n_frames, gif.info["duration"], gif.info["loop"], gif.size) == (3, 80, 0, (480, 240))
        gif.seek(2)
        assert gif.convert("RGB").getpixel((30, 20)) == pytest.approx(COLORS[2], abs=4)


def failing():
    yield from frames(2)
    raise VideoError("the env broke")


@pytest.mark.parametrize("ending", ["mp4", "gif"])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, ending):
    path = tmp_path / f"film.{ending}"
    path.write_bytes(b"old")
    with pytest.raises(VideoError, match="the env broke"):
        write_video(path, failing(), 30.0)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_cannot_be_made_is_a_typed_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(VideoError, match=r"cannot write .*film\.mp4: (Not a directory|File exists)"):
        write_video(tmp_path / "file" / "film.mp4", frames(), 30.0)


@pytest.mark.parametrize(("name", "problem"), [("film.avi", "must be .mp4 or .gif"), ("film", "must be .mp4 or .gif")])
def test_other_endings_are_refused(name, problem):
    with pytest.raises(VideoError, match=problem):
        check_video_file(Path(name))


def test_a_folder_is_not_a_file(tmp_path):
    (tmp_path / "film.mp4").mkdir()
    with pytest.raises(VideoError, match="it is not a file"):
        check_video_file(tmp_path / "film.mp4")


def test_without_the_extra_only_gifs_are_written(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "av" else find(name, *rest))
    check_video_file(Path("film.gif"))
    with pytest.raises(VideoError) as refused:
        check_video_file(Path("film.mp4"))
    assert install_hint("video") in str(refused.value)


def test_a_preview_is_small_and_spans_the_recording(tmp_path):
    preview, file = Preview(), tmp_path / "small.gif"
    assert len(list(preview.watching(frames(300, (320, 240))))) == 300
    file.write_bytes(preview.gif(30.0))
    with Image.open(file) as gif:
        assert gif.size == preview.size == (SIDE, SIDE * 3 // 4)
        assert MOST_FRAMES / 2 <= gif.n_frames <= MOST_FRAMES
        gif.seek(gif.n_frames - 1)
        seconds = gif.n_frames * gif.info["duration"] / 1000
    assert seconds == pytest.approx(10, rel=0.1)
