"""Weights & Biases for real, offline: what it wrote is read back from its own file."""

import importlib.util
import json
import os
import shutil
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from surefoot.machine.extras import install_hint
from tests.cli.processes import Finished, Process, surefoot
from tests.cli.runs import TINY

_FILE_HEADER, _BLOCK, _RECORD_HEADER = 7, 32 * 1024, 7


def train_offline(run: Path, *arguments: str) -> None:
    from surefoot.cli.main import main

    os.environ["WANDB_MODE"] = "offline"
    settings = [str(argument) for argument in (*TINY, "--log.wandb", "--log.wandb_project", "legs", *arguments)]
    sys.exit(main(["train", "CartPole-v1", "--run-dir", str(run), "--steps", "96", *settings]))


def wandb_records(run: Path) -> Iterator[bytes]:
    """The records of the one offline file: a log of blocks, in which a record may be in parts."""
    (path,) = (run / "wandb").glob("offline-run-*/run-*.wandb")
    data, at, parts = path.read_bytes(), _FILE_HEADER, b""
    while at + _RECORD_HEADER <= len(data):
        left = _BLOCK - at % _BLOCK
        if left < _RECORD_HEADER:
            at += left
            continue
        _, length, kind = struct.unpack("<IHB", data[at : at + _RECORD_HEADER])
        at += _RECORD_HEADER
        parts += data[at : at + length]
        at += length
        if kind in (1, 4):  # whole, or last
            yield parts
            parts = b""


def parsed(run: Path) -> list[dict]:
    """The records as JSON, in a process of its own: importing wandb here would outlive the test."""
    shown: Finished = Process(print_records, run).wait().succeeded()
    return [json.loads(line) for line in shown.out.splitlines()]


def print_records(run: Path) -> None:
    from google.protobuf.json_format import MessageToDict
    from wandb.proto import wandb_internal_pb2

    for raw in wandb_records(run):
        print(json.dumps(MessageToDict(wandb_internal_pb2.Record.FromString(raw), preserving_proto_field_name=True)))


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    run = tmp_path_factory.mktemp("wandb") / "run"
    finished = Process(train_offline, run, "--train.video_every", "64", "--train.video_steps", "3").wait().succeeded()
    assert finished.err == ""
    assert "wandb" not in finished.out.replace(str(run), "")
    return run


def test_metrics_arrive_with_their_steps(run: Path) -> None:
    history = [record["history"] for record in parsed(run) if "history" in record]
    rows = [
        {"/".join(item.get("nested_key", [])) or item["key"]: item["value_json"] for item in row["item"]}
        for row in history
    ]
    assert [int(row["_step"]) for row in rows] == [32, 64, 96]
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    for name in ("train/approx_kl", "time/fps", "train/value_loss"):
        assert [float(row[name]) for row in rows] == pytest.approx([line[name] for line in lines])


def test_videos_arrive_with_their_steps(run: Path) -> None:
    rows = [record["history"]["item"] for record in parsed(run) if "history" in record]
    keyed = [{"/".join(item.get("nested_key", [])) or item["key"]: item["value_json"] for item in row} for row in rows]
    assert [int(row["_step"]) for row in keyed if any(key.startswith("video/policy") for key in row)] == [64, 96]
    (media,) = (run / "wandb").glob("offline-run-*/files/media/videos/video")
    sizes = sorted(file.stat().st_size for file in (run / "videos").iterdir())
    assert sorted(file.stat().st_size for file in media.iterdir()) == sizes


def test_it_has_the_name_the_project_and_the_whole_config(run: Path) -> None:
    (record,) = [record["run"] for record in parsed(run) if "run" in record][:1]
    assert (record["display_name"], record["project"], record["run_group"]) == ("run", "legs", "run")
    config = {item["key"]: json.loads(item["value_json"]) for item in record["config"]["update"]}
    assert config["rollout"]["num_steps"] == 16
    assert config["log"]["wandb"] is True


def resume_offline(run: Path) -> None:
    from surefoot.cli.main import main

    os.environ["WANDB_MODE"] = "offline"
    sys.exit(main(["resume", str(run), "--steps", "128"]))


def test_a_name_of_its_own_is_kept_by_resume(tmp_path: Path) -> None:
    run = tmp_path / "run"
    Process(train_offline, run, "--log.wandb_name", "longer legs").wait().succeeded()
    names = []
    for _ in range(2):
        (record,) = [record["run"] for record in parsed(run) if "run" in record][:1]
        names.append((record["display_name"], record["run_group"]))
        shutil.rmtree(run / "wandb")
        if len(names) == 1:
            Process(resume_offline, run).wait().succeeded()
    assert names == [("longer legs", "run")] * 2


def train_without_wandb(run: Path) -> None:
    """As where the extra is not installed."""
    find = importlib.util.find_spec
    importlib.util.find_spec = lambda name, *rest: None if name == "wandb" else find(name, *rest)
    train_offline(run)


def test_without_the_package_it_is_refused_before_there_is_a_run(tmp_path: Path) -> None:
    message = Process(train_without_wandb, tmp_path / "run").wait().refused()
    assert message == f"error: log.wandb: the package wandb is not installed; {install_hint('wandb')}\n"
    assert not (tmp_path / "run").exists()


def train_without_login(run: Path) -> None:
    os.environ.update(WANDB_MODE="online", WANDB_API_KEY="too short", HOME=str(run.parent))
    from surefoot.cli.main import main

    sys.exit(main(["train", "CartPole-v1", "--run-dir", str(run), *map(str, TINY), "--log.wandb"]))


def test_if_it_cannot_start_the_run_does_not_either(tmp_path: Path) -> None:
    message = Process(train_without_login, tmp_path / "run").wait().refused()
    assert "log.wandb: W&B failed to start" in message
    assert "WANDB_MODE=offline" in message
    assert message.count("\n") == 1


def test_the_project_must_have_a_name(tmp_path: Path) -> None:
    assert "log.wandb_project" in surefoot("train", "CartPole-v1", "--log.wandb_project", "").refused()
