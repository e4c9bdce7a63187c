"""The real command with real processes: members and the coordinator are killed, and the results are the same bits."""

import signal
from contextlib import suppress
from pathlib import Path

import psutil
import yaml

from surefoot.population.settings import build_plan
from tests.cli.processes import Process
from tests.jobs.forked import start
from tests.population.populations import small_raw, train


def member_of(process: Process, folder: Path, member: int) -> psutil.Process | None:
    """The process of a member, once it has locked its directory."""
    for one in psutil.Process(process.pid).parent().children():
        with suppress(psutil.Error):
            if any(file.path == f"{folder}/members/{member:02d}/lock" for file in one.open_files()):
                return one
    return None


def test_same_bits_after_kills_of_a_member_and_of_the_coordinator(tmp_path):
    raw = small_raw(members=2, iterations=30) | {"train": {"steps": 2880, "checkpoint_every": 64}}
    train(tmp_path / "whole", build_plan(raw))
    config, folder = tmp_path / "population.yaml", tmp_path / "killed"
    config.write_text(yaml.safe_dump({"preset": "none", **raw}))
    process = start(
        "population", config, "--run-dir", folder, "--population.backend", "local", "--population.parallel", 2
    )
    found: list[psutil.Process] = []

    def is_training() -> bool:
        found[:] = [one for one in [member_of(process, folder, 0)] if one is not None]
        return bool(found)

    process.wait_until(is_training)
    found[0].kill()
    process.wait_until((folder / "members" / "01" / "rounds" / "0001.json").exists)
    process.wait_until(is_training)
    process.send(signal.SIGKILL)
    assert "member 00  restarted: its process was ended by signal 9" in process.wait().out
    finished = start("population", "resume", folder).wait().succeeded()
    assert "winner    member" in finished.out
    assert (folder / "population.jsonl").read_bytes() == (tmp_path / "whole" / "population.jsonl").read_bytes()
