"""The real command with real processes: members and the coordinator are killed, and the results are the same bits."""

import signal
from contextlib import suppress
from pathlib import Path

import psutil
import yaml

from surefoot.population.settings import build_plan
from tests.cli.processes import start
from tests.population.populations import small_raw, train


def member_of(coordinator: int, member: int) -> psutil.Process | None:
    """The process of a member, once it has locked its directory."""
    for child in psutil.Process(coordinator).children():
        with suppress(psutil.Error):
            files = [Path(file.path) for file in child.open_files()]
            if any(path.name == "lock" and path.parent.name == f"{member:02d}" for path in files):
                return child
    return None


def test_same_bits_after_kills_of_a_member_and_of_the_coordinator(tmp_path):
    raw = small_raw(members=2, iterations=30) | {"train": {"steps": 1920, "checkpoint_every": 64}}
    train(tmp_path / "whole", build_plan(raw))
    config, folder = tmp_path / "population.yaml", tmp_path / "killed"
    config.write_text(yaml.safe_dump({"preset": "none", **raw}))
    process = start(
        "population", config, "--run-dir", folder, "--population.backend", "local", "--population.parallel", 2
    )
    process.wait_until(lambda: member_of(process.pid, 0) is not None)
    member_of(process.pid, 0).kill()
    process.wait_until((folder / "members" / "01" / "rounds" / "0001.json").exists)
    process.wait_until(lambda: member_of(process.pid, 0) is not None)
    process.send(signal.SIGKILL)
    assert "member 00  restarted: its process was ended by signal 9" in process.wait().out
    finished = start("population", "resume", folder).wait().succeeded()
    assert "winner    member" in finished.out
    assert (folder / "population.jsonl").read_bytes() == (tmp_path / "whole" / "population.jsonl").read_bytes()
