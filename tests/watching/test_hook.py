"""Videos during training: when, and what happens if one fails or the process is killed."""

import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from surefoot.api import PPO
from surefoot.errors import ConfigError
from surefoot.telemetry.sinks import FileSink
from surefoot.training.checkpoint import read_checkpoint
from surefoot.training.run_directory import RunDirectory
from surefoot.watching import hook as video_hook
from tests.cli.processes import Process, surefoot
from tests.cli.runs import TINY
from tests.watching.drawn_envs import Broken, Lamp

SETTINGS = {"num_envs": 2, "num_steps": 16, "batch_size": 16, "hidden": 4, "eval_episodes": 0, "video_format": "gif"}
"""Iterations of 32 steps."""


def names(run):
    return sorted(path.name for path in RunDirectory(run).videos.iterdir())


def weights(agent):
    return np.concatenate([parameter.detach().numpy().ravel() for parameter in agent.policy.parameters()])


class Tickets(FileSink):
    """A user's own sink that takes videos."""

    sold: list = []

    def __init__(self, folder, config, settings=None):
        pass

    def write(self, step, metrics):
        pass

    def write_video(self, step, video):
        self.sold.append((step, video.path.name))

    def close(self):
        pass


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("videos") / "run"
    sinks = {"tickets": "tests.watching.test_hook:Tickets"}
    agent = PPO(Lamp, seed=1, video_every=64, **SETTINGS, log={"sinks": sinks})
    return agent.learn(160, run_dir=folder), folder


def test_videos_are_recorded_when_due_and_at_the_end(trained):
    _, run = trained
    assert names(run) == [f"step_{step:09d}.gif" for step in (64, 128, 160)]
    with Image.open(run / "videos" / "step_000000160.gif") as gif:
        assert gif.n_frames > 1
    log = (run / "log.txt").read_text()
    assert log.count("INFO video of step") == 3


def test_videos_reach_tensorboard_and_sinks_of_users(trained):
    _, run = trained
    images = EventAccumulator(str(run)).Reload().Images("video/policy")
    assert [image.step for image in images] == [64, 128, 160]
    assert all(image.encoded_image_string.startswith(b"GIF8") for image in images)
    assert Tickets.sold == [(step, f"step_{step:09d}.gif") for step in (64, 128, 160)]


def test_training_does_not_notice(trained):
    agent, _ = trained
    assert (weights(PPO(Lamp, seed=1, **SETTINGS).learn(160)) == weights(agent)).all()


def test_a_failure_costs_one_warning(tmp_path, caplog):
    agent = PPO(Broken, seed=1, video_every=32, **SETTINGS).learn(96, run_dir=tmp_path / "run")
    warned = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warned) == 1
    assert warned[0].startswith("no video of step 32, training continues: environment 'Broken': render() must return")
    assert agent._started().progress.step == 96
    assert not (tmp_path / "run" / "videos").exists()


def test_without_a_run_directory_it_says_so(caplog):
    PPO(Lamp, seed=1, video_every=32, **SETTINGS).learn(32)
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        "train.video_every has no effect without a run directory"
    ]


def test_an_mp4_without_its_package_is_refused_before_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(video_hook, "missing_package", lambda video_format: f"no package writes {video_format}")
    agent = PPO(Lamp, seed=1, video_every=32, **SETTINGS | {"video_format": "mp4"})
    with pytest.raises(
        ConfigError, match=r"train.video_every: no package writes mp4, or set train.video_format to gif"
    ):
        agent.learn(32, run_dir=tmp_path / "run")


def train_until_killed(run: str) -> None:
    """Killed in the middle of the second video, whose step is saved already."""
    from surefoot.cli.main import main
    from surefoot.watching import recording

    drawn = recording.drawn

    def drawn_or_killed(*arguments):
        if (Path(run) / "videos" / "step_000000064.gif").exists():
            os.kill(os.getpid(), signal.SIGKILL)
        return drawn(*arguments)

    recording.drawn = drawn_or_killed
    sys.exit(main(["train", "CartPole-v1", "--run-dir", run, "--steps", "224", *map(str, VIDEOS)]))


VIDEOS = (
    *TINY,
    "--train.video_every",
    64,
    "--train.video_steps",
    2,
    "--train.video_format",
    "gif",
    "--train.checkpoint_every",
    32,
)


def test_a_killed_run_records_what_is_missing_and_goes_on(tmp_path):
    run = tmp_path / "run"
    assert Process(train_until_killed, str(run)).wait().code == -signal.SIGKILL
    assert names(run) == ["step_000000064.gif"], "an unfinished file has another name only while it is written"
    (run / "videos" / f".step_000000128.gif.{2**22 + 1}.tmp").write_bytes(b"left by a killed process")
    surefoot("resume", run).succeeded()
    assert names(run) == [f"step_{step:09d}.gif" for step in (64, 128, 192, 224)]
    assert read_checkpoint(RunDirectory(run).saved()[0])["config"]["train"]["video_every"] == 64
