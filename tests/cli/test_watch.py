"""`surefoot watch`: a video, a window, and what is refused."""

import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import av
import pytest

from tests.cli.processes import Process, surefoot
from tests.cli.runs import TINY, train
from tests.watching.displays import find_or_skip

pytestmark = pytest.mark.xdist_group("watch")


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    run = tmp_path_factory.mktemp("watch") / "run"
    train("CartPole-v1", run, *TINY, "--steps", 32)
    return run


def test_a_video_of_the_episodes_that_evaluate_plays(run, tmp_path):
    video = tmp_path / "pole.mp4"
    lines = surefoot("watch", run, "--video", video, "--episodes", 2, "--seed", 4).succeeded().out.splitlines()
    found = re.findall(r"episode (\d) +return ([\d.]+), (\d+) steps", "\n".join(lines))
    evaluated = surefoot("evaluate", run, "--episodes", 2, "--seed", 4, "--json").succeeded().out
    rewards = re.search(r'"rewards": \[(.*?)\]', evaluated)[1].split(", ")
    assert [(number, float(total)) for number, total, _ in found] == [
        ("1", float(rewards[0])),
        ("2", float(rewards[1])),
    ]
    assert lines[0].endswith("safetensors")
    assert re.fullmatch(rf"video     {video}  \([\d.]+ s, [1-9]\d* kB\)", lines[-1])
    with av.open(str(video)) as file:
        assert file.streams.video[0].frames > 4


def test_sampled_actions_differ(run, tmp_path):
    plain = surefoot("watch", run, "--video", tmp_path / "a.gif", "--episodes", 2, "--max-steps", 25).succeeded().out
    sampled = (
        surefoot("watch", run, "--video", tmp_path / "b.gif", "--episodes", 2, "--max-steps", 25, "--sampled")
        .succeeded()
        .out
    )
    assert plain.splitlines()[1:3] != sampled.splitlines()[1:3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--video", "film.avi"), "the ending must be .mp4 or .gif"),
        (("--video", "film.gif", "--episodes", 0), "--episodes: must be at least 1"),
        (("--video", "film.gif", "--max-steps", 0), "--max-steps: must be at least 1"),
        (("--video", "film.gif", "--env", "Pendulum-v1"), "differs from those the agent was trained with"),
    ],
)
def test_what_is_refused(run, arguments, message):
    assert message in surefoot("watch", run, *arguments).refused()


def without_display(run: str) -> None:
    from surefoot.cli.main import main

    os.environ.pop("DISPLAY", None)
    os.environ.pop("WAYLAND_DISPLAY", None)
    raise SystemExit(main(["watch", run]))


def test_without_a_display_it_advises_a_video(run):
    message = Process(without_display, str(run)).wait().refused()
    assert "there is no display to open a window on" in message
    assert "--video FILE.mp4" in message


def on_display(run: str, display: str, *options: str) -> None:
    from surefoot.cli.main import main

    os.environ["DISPLAY"] = display
    os.environ.pop("WAYLAND_DISPLAY", None)
    raise SystemExit(main(["watch", run, "--max-steps", "5", *options]))


def test_a_display_that_is_gone_advises_a_video(run):
    finished = Process(on_display, str(run), ":4242").wait()
    assert finished.code == 2
    assert "could not be opened: error: x11 not available" in finished.err  # pygame's class is called error
    assert "--video FILE.mp4" in finished.err


def test_a_window_opens_on_a_display(run):
    server = find_or_skip(shutil.which("Xvfb"), "no Xvfb on this machine")
    display = f":{4300 + os.getpid() % 1000}"
    process = subprocess.Popen([server, display, "-screen", "0", "800x600x24"], stderr=subprocess.DEVNULL)
    try:
        socket = Path(f"/tmp/.X11-unix/X{display[1:]}")
        ends = time.monotonic() + 60
        while not socket.exists() and process.poll() is None and time.monotonic() < ends:
            time.sleep(0.05)
        processes = [
            Process(on_display, str(run), display, *options) for options in ([], ["--env", "envpool:CartPole-v1"])
        ]
        finished = [each.wait().succeeded() for each in processes]
    finally:
        process.terminate()
        process.wait()
    for each in finished:
        assert re.search(r"episode 1 +return 5.00, 5 steps", each.out)
