"""Videos in a report: embedded and playing, or linked."""

import pytest
from PIL import Image

from surefoot.inspection.report import videos
from surefoot.inspection.report.page import report_page
from surefoot.inspection.report.videos import recorded, videos_of
from surefoot.watching.video_file import write_video
from tests.inspection.report.browser import probe
from tests.inspection.report.written_runs import records, write_run

pytestmark = pytest.mark.xdist_group("browser")
PLAY = """
  const video = document.querySelector("video"), picture = document.querySelector("section img");
  for (let tries = 0; tries < 100 && video.readyState < 2; tries++) await wait();
  return { width: video.videoWidth, seconds: video.duration, picture: picture.naturalWidth,
    captions: [...document.querySelectorAll("figcaption")].map((each) => each.textContent).slice(0, 40),
    headings: [...document.querySelectorAll("h2")].map((heading) => heading.textContent) };
"""


def film(path, count=5):
    write_video(path, (Image.new("RGB", (64, 48), (number * 40, 90, 60)) for number in range(count)), 10.0)


@pytest.fixture
def run(tmp_path):
    run = write_run(tmp_path / "a run", records(12))
    film(run.path / "videos" / "step_000000256.mp4")
    film(run.path / "videos" / "step_000000512.gif")
    return run


def test_a_browser_plays_them(run, tmp_path):
    found = probe(report_page([run]), tmp_path, PLAY)
    assert found["problem"] == ""
    assert found["requests"] == []
    assert "Videos" in found["headings"]
    assert (found["width"], found["seconds"], found["picture"]) == (64, pytest.approx(0.5), 64)
    assert {"step 256", "step 512"} <= set(found["captions"])


def test_large_ones_are_linked_from_where_the_page_will_be(run, tmp_path, monkeypatch):
    monkeypatch.setattr(videos, "MOST_BYTES", (run.path / "videos" / "step_000000512.gif").stat().st_size - 1)
    html = videos_of([run], tmp_path / "elsewhere")
    assert '<a href="../a%20run/videos/step_000000512.gif">step 512</a>' in html
    monkeypatch.setattr(videos, "MOST_BYTES_ON_PAGE", 10)
    assert "data:" not in videos_of([run], tmp_path)


def test_some_of_many_are_shown(run):
    for step in range(1, 30):
        (run.path / "videos" / f"step_{step * 1000:09d}.gif").write_bytes(b"GIF89a")
    html = videos_of([run], run.path)
    assert html.count("<figure>") == videos.MOST_SHOWN
    assert html.count("<a href=") == 31 - videos.MOST_SHOWN
    assert "<figcaption>step 29,000</figcaption>" in html, "the last one is shown"


def test_other_files_are_left_alone(run, tmp_path):
    (tmp_path / "secret.mp4").write_bytes(b"secret")
    (run.path / "videos" / "step_000000003.mp4").symlink_to(tmp_path / "secret.mp4")
    (run.path / "videos" / "notes.txt").write_text("")
    (run.path / "videos" / ".step_000000128.mp4.77.tmp").write_bytes(b"")
    assert [step for step, _ in recorded(run.path)] == [256, 512]
    assert recorded(tmp_path / "nowhere") == []


def test_without_videos_there_is_no_section(tmp_path):
    assert "<h2>Videos</h2>" not in report_page([write_run(tmp_path / "plain", records(3))])
