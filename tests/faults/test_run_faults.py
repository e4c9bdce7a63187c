"""Faults 2, 3, 10 and 11: full disks, folders that cannot be written, two processes, signals."""

import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from surefoot.api import PPO
from surefoot.data.records import IterationReport
from surefoot.errors import HookError, RunDirectoryError
from surefoot.settings.config import Config
from surefoot.training.checkpoint import read_checkpoint
from surefoot.training.run_directory import RunDirectory
from tests.cli.processes import Finished, Process, start, surefoot
from tests.cli.runs import QUIET, TINY, column, newest, records, saved_steps, train
from tests.training.states import assert_same

ENVS = "tests.cli.odd_envs"
LONG = ("--steps", 10_000_000, "--train.checkpoint_every", 10_000_000)


def log_of(run: Path) -> str:
    return (run / "log.txt").read_text()


# Fault 2: the disk is full.


def limit_files(size: int) -> None:
    """No file may grow beyond this; a write that would fails, as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


class FillDisk:
    """Full from the second iteration on, free again from the fifth; notes the checkpoints that each one finds."""

    def __init__(self, run: Path) -> None:
        self._run = run
        self.found: list[dict[str, str]] = []

    def after_iteration(self, report: IterationReport) -> None:
        checkpoints = (self._run / "checkpoints").iterdir()
        self.found.append({path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in checkpoints})
        if report.progress.iteration == 2:
            limit_files(8000)
        if report.progress.iteration == 5:
            limit_files(resource.RLIM_INFINITY)


def learn_with_a_full_disk(run: Path) -> None:
    agent = PPO("CartPole-v1", num_envs=2, num_steps=16, batch_size=16, eval_episodes=0, checkpoint_every=32)
    disk = FillDisk(run)
    agent.learn(256, run_dir=run, hooks=[disk])
    print(json.dumps(disk.found))


def test_a_full_disk_costs_one_warning_and_nothing_else(tmp_path):
    run = tmp_path / "run"
    finished = Process(learn_with_a_full_disk, run).wait().succeeded()
    found = json.loads(finished.out)
    start, first, retried = (f"step_{step:012d}.safetensors" for step in (0, 32, 160))
    # The hook comes before the save of its iteration, so 64, 96 and 128 fail and 160 does not.
    assert [sorted(files) for files in found[:6]] == [[start], [first], [first], [first], [first], [first, retried]]
    assert len({files[first] for files in found[1:6]}) == 1, "the old file is intact"
    log = log_of(run)
    assert log.count("WARNING checkpoint at step") == 2
    assert log.count("not saved (File too large); will retry, training continues") == 1
    assert log.count("saved after retrying") == 1
    assert saved_steps(run) == [256, 224, 192]
    assert newest(run)["progress"]["step"] == 256
    assert column(run, "step") == list(range(32, 257, 32))


def train_without_room(arguments: list[str], limit: int) -> None:
    from surefoot.cli.main import main

    limit_files(limit)
    raise SystemExit(main(arguments))


def test_a_run_whose_end_could_not_be_saved_is_no_success(tmp_path):
    run = tmp_path / "run"
    arguments = ["train", "CartPole-v1", "--run-dir", run, *TINY, "--steps", 96, "--train.checkpoint_every", 32]
    finished = Process(train_without_room, [str(argument) for argument in arguments], 8000).wait()
    assert finished.code == 2
    message = f"error: the run ended at step 96, but the checkpoint could not be saved in {run} (File too large)"
    assert message in finished.err
    assert finished.err.count("WARNING: checkpoint") == 1
    assert "Traceback" not in finished.err
    assert column(run, "step") == [32, 64, 96]
    assert os.listdir(run / "checkpoints") == ["step_000000000000.safetensors"]


def test_a_lack_of_file_descriptors_is_survived_like_a_full_disk(tmp_path):
    run = tmp_path / "run"
    held = ("--rollout.engine", "local", "--env.kwargs", json.dumps({"begin": 20, "end": 60}))
    steps = ("--steps", 192, "--train.checkpoint_every", 32)
    finished = train(f"{ENVS}:Hoarding-v0", run, *TINY, *held, *steps)
    assert finished.err.count("not saved (Too many open files); will retry, training continues") == 1
    assert finished.err.count("saved after retrying") == 1
    assert newest(run)["progress"]["step"] == 192
    assert column(run, "step") == list(range(32, 193, 32))


def test_a_disk_full_to_the_last_byte_does_not_end_training(tmp_path):
    """Logs and metrics fail too: each writer warns once on the terminal, none with a traceback."""
    finished = Process(learn_until_the_disk_is_full, tmp_path / "run").wait().succeeded()
    step, shown = json.loads(finished.out)
    assert step == 128
    assert "Traceback" not in shown
    assert "Logging error" not in shown
    assert shown.count("WARNING: JsonlSink failed and was disabled") == 1
    assert shown.count("WARNING: checkpoint at step") == 1


def learn_until_the_disk_is_full(run: Path) -> None:
    class Fill:
        def after_iteration(self, report: IterationReport) -> None:
            limit_files(0)

    rollout = {"num_envs": 2, "num_steps": 16, "batch_size": 16}
    agent = PPO("CartPole-v1", **rollout, eval_episodes=0, console="plain", tensorboard=False)
    output = os.dup(1)
    read, write = os.pipe()  # a pipe has room where a file has none
    os.dup2(write, 1)
    os.dup2(write, 2)
    with pytest.raises(RunDirectoryError, match="could not be saved"):
        agent.learn(128, run_dir=run, hooks=[Fill()])
    limit_files(resource.RLIM_INFINITY)
    sys.stdout.flush()
    os.dup2(output, 1)
    print(json.dumps([agent._started().progress.step, os.read(read, 100_000).decode()]))


def test_a_disk_that_is_full_from_the_start_is_refused(tmp_path):
    Process(start_on_a_full_disk, tmp_path / "run").wait().succeeded()


def start_on_a_full_disk(run: Path) -> None:
    limit_files(0)
    with pytest.raises(RunDirectoryError, match=r"is not writable \(File too large\)"), RunDirectory(run):
        pass
    limit_files(resource.RLIM_INFINITY)
    with RunDirectory(run):
        limit_files(0)
        with pytest.raises(RunDirectoryError, match=r"is not writable \(File too large\)"):
            RunDirectory(run).write_config(Config())
        limit_files(resource.RLIM_INFINITY)
    assert not RunDirectory(run).holds_run


# Fault 3: the run directory cannot be written.


def assert_refused_before_step_0(finished: Finished, run: Path, cause: str) -> None:
    message = finished.refused()
    assert f"the run directory {run} is not writable ({cause}); choose another with --run-dir" in message
    assert "ETA" not in finished.out


def test_a_run_directory_below_a_file_is_refused(tmp_path):
    (tmp_path / "file").touch()
    run = tmp_path / "file" / "run"
    assert_refused_before_step_0(surefoot("train", "CartPole-v1", "--run-dir", run, *TINY), run, "Not a directory")
    with pytest.raises(RunDirectoryError, match="Not a directory"):
        PPO("CartPole-v1").learn(32, run_dir=run)


def test_a_read_only_file_system_is_refused(tmp_path):
    options = ["-t", "tmpfs", "-o", "size=1m", "surefoot-test", tmp_path]
    if shutil.which("mount") is None or subprocess.run(["mount", *options], capture_output=True).returncode:
        pytest.skip("needs the right to mount")
    try:
        train("CartPole-v1", tmp_path / "old", *TINY, "--steps", 32)
        subprocess.run(["mount", "-o", "remount,ro", tmp_path], check=True)
        new, old = tmp_path / "new", tmp_path / "old"
        finished = surefoot("train", "CartPole-v1", "--run-dir", new, *TINY)
        assert_refused_before_step_0(finished, new, "Read-only file system")
        assert_refused_before_step_0(surefoot("resume", old, "--steps", 64), old, "Read-only file system")
        assert json.loads(surefoot("evaluate", old, "--json").succeeded().out)["episodes"] == 20
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def train_as_nobody(arguments: list[str]) -> None:
    from surefoot.cli.main import main
    from surefoot.presets import preset_names

    preset_names()  # what it imports may be where nobody can read
    if os.geteuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    raise SystemExit(main(arguments))


@pytest.fixture
def closed_folder() -> Iterator[Path]:
    """One that nobody may write, with one in it that nobody may enter."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "private").mkdir()
        for path, mode in ((folder / "private", 0o000), (folder, 0o555)):
            path.chmod(mode)
        yield folder
        for path in (folder, folder / "private"):
            path.chmod(0o700)


def test_a_folder_of_somebody_else_is_refused(closed_folder):
    private = closed_folder / "private"
    for run in (closed_folder / "run", private / "run", private):
        arguments = ["train", "CartPole-v1", "--run-dir", str(run), *map(str, TINY)]
        assert_refused_before_step_0(Process(train_as_nobody, arguments).wait(), run, "Permission denied")


# Fault 10: two processes.


def test_a_second_process_is_refused_and_a_stale_lock_taken_over(tmp_path):
    run = tmp_path / "run"
    first = start(
        "train", "CartPole-v1", "--run-dir", run, *TINY, "--steps", 10_000_000, "--train.checkpoint_every", 32
    )
    first.wait_until(lambda: len(saved_steps(run)) > 1)
    message = surefoot("resume", run, "--steps", 64).refused()
    assert f"the run directory {run} is in use by process {first.pid}" in message
    with pytest.raises(RunDirectoryError, match=f"in use by process {first.pid}"), RunDirectory(run):
        pass
    assert "already contains a run" in surefoot("train", "CartPole-v1", "--run-dir", run, *TINY).refused()
    first.send(signal.SIGKILL)
    assert first.wait().code == -signal.SIGKILL
    assert (run / "lock").read_text() == str(first.pid)
    done = saved_steps(run)[0]
    surefoot("resume", run, "--steps", done + 64).succeeded()
    assert saved_steps(run)[0] == done + 64


# Fault 11: signals.

SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_signal_in_a_rollout_finishes_the_iteration_and_saves(tmp_path, number, code):
    run, whole = tmp_path / "run", tmp_path / "whole"
    kwargs = json.dumps({"at": 40, "numbers": [int(number)], "done": str(tmp_path / "done")})
    env = ("--rollout.num_envs", 1, "--env.kwargs", kwargs)
    finished = surefoot("train", f"{ENVS}:Signalling-v0", "--run-dir", run, *TINY, *env, "--steps", 96)
    assert finished.code == code
    assert (tmp_path / "done").exists()
    # Step 40 is in the third rollout of 16.
    assert f"stopped at step 48; 'surefoot resume {run}' continues the run" in finished.out
    assert f"{number.name} received: finishing this iteration, then saving" in log_of(run)
    assert saved_steps(run) == [48]
    surefoot("resume", run).succeeded()
    train(f"{ENVS}:Signalling-v0", whole, *TINY, *env, "--steps", 96)
    assert_same(newest(run), newest(whole))
    assert records(run) == records(whole)


def is_in_second_update(run: Path) -> bool:
    """One iteration is reported; with these settings nearly all of the next is its update."""
    return (run / "metrics.jsonl").exists() and len(records(run)) == 1


EPOCHS = 1_000
"""About two seconds of updates."""
LONG_UPDATES = ("--rollout.num_envs", 1, "--rollout.num_steps", 32, "--ppo.batch_size", 1, *QUIET)


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_signal_in_an_update_finishes_the_iteration_and_saves(tmp_path, number, code):
    process = start("train", "CartPole-v1", "--run-dir", tmp_path, *LONG_UPDATES, *LONG, "--ppo.epochs", EPOCHS)
    process.wait_until(lambda: is_in_second_update(tmp_path))
    time.sleep(0.05)
    process.send(number)
    finished = process.wait()
    assert finished.code == code
    assert "Traceback" not in finished.err
    assert column(tmp_path, "step") == [32, 64]
    assert column(tmp_path, "train/epochs") == [EPOCHS, EPOCHS]
    assert newest(tmp_path)["progress"] == {"step": 64, "iteration": 2, "update": 2}
    surefoot("resume", tmp_path, "--steps", 96, "--ppo.epochs", 1).succeeded()
    assert column(tmp_path, "step") == [32, 64, 96]


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_second_signal_exits_at_once(tmp_path, number, code):
    process = start("train", "CartPole-v1", "--run-dir", tmp_path, *LONG_UPDATES, *LONG, "--ppo.epochs", 100_000)
    process.wait_until(lambda: (tmp_path / "metrics.jsonl").exists())
    time.sleep(0.3)
    process.send(number)
    process.wait_until(lambda: "finishing this iteration" in log_of(tmp_path))
    began = time.monotonic()
    process.send(number)
    assert process.wait().code == code
    assert time.monotonic() - began < 2
    assert saved_steps(tmp_path) == [0]


def test_two_signals_in_one_step_of_a_rollout(tmp_path):
    kwargs = json.dumps({"at": 5, "numbers": [15, 2], "done": str(tmp_path / "done")})
    run = tmp_path / "run"
    finished = surefoot("train", f"{ENVS}:Signalling-v0", "--run-dir", run, *TINY, "--env.kwargs", kwargs)
    assert finished.code == 130
    assert saved_steps(run) == [0]


def train_under_nohup(arguments: list[str]) -> None:
    from surefoot.cli.main import main

    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    raise SystemExit(main(arguments))


def test_under_nohup_a_lost_connection_is_nothing(tmp_path):
    kwargs = json.dumps({"at": 5, "numbers": [int(signal.SIGHUP)], "done": str(tmp_path / "done")})
    run = tmp_path / "run"
    arguments = ("train", f"{ENVS}:Signalling-v0", "--run-dir", run, *TINY, "--env.kwargs", kwargs, "--steps", 96)
    Process(train_under_nohup, [str(argument) for argument in arguments]).wait().succeeded()
    assert (tmp_path / "done").exists()
    assert saved_steps(run) == [96]


def test_a_run_killed_before_its_first_checkpoint_is_started_again_by_resume(tmp_path):
    run, whole = tmp_path / "run", tmp_path / "whole"
    process = start("train", "CartPole-v1", "--run-dir", run, *TINY, *LONG)
    process.wait_until(lambda: saved_steps(run) != [])
    process.send(signal.SIGKILL)
    process.wait()
    assert saved_steps(run) == [0]
    again = surefoot("train", "CartPole-v1", "--run-dir", run, *TINY).refused()
    assert f"continue it with 'surefoot resume {run}'" in again
    finished = surefoot("resume", run, "--steps", 64).succeeded()
    assert f"resuming {run} from step_000000000000.safetensors" in finished.out
    train("CartPole-v1", whole, *TINY, "--steps", 64)
    ours, theirs = newest(run), newest(whole)
    assert ours["progress"]["step"] == 64
    assert_same(ours["policy"], theirs["policy"])


def test_a_run_killed_before_its_start_is_saved_is_started_by_resume(tmp_path):
    train("CartPole-v1", tmp_path / "whole", *TINY, "--steps", 64)
    run = tmp_path / "run"
    run.mkdir()
    shutil.copy(tmp_path / "whole" / "config.yaml", run)
    finished = surefoot("resume", run).succeeded()
    assert f"{run} has not begun yet: starting it" in finished.out
    assert_same(newest(run)["policy"], newest(tmp_path / "whole")["policy"])


# An env whose state no file can hold.


def test_a_state_that_cannot_be_saved_is_refused_before_step_0(tmp_path):
    kwargs = json.dumps({"at": 0, "numbers": [], "done": ""})
    finished = surefoot("train", f"{ENVS}:Unsavable-v0", "--run-dir", tmp_path, *TINY, "--env.kwargs", kwargs)
    message = finished.refused()
    assert "collector.envs.envs.0.inner.own.visited is a object; checkpoints support only numbers, strings" in message
    assert (tmp_path / "metrics.jsonl").exists() is False


def test_hooks_that_raise_close_what_is_open(tmp_path):
    class Fail:
        def after_iteration(self, report: IterationReport) -> Any:
            raise ValueError("mine")

    agent = PPO("CartPole-v1", num_envs=2, num_steps=16, batch_size=16)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(HookError, match=r"hook .Fail. raised an exception in after_iteration: ValueError: mine"):
        agent.learn(64, run_dir=tmp_path, hooks=[Fail()])
    assert signal.getsignal(signal.SIGINT) is before
    with RunDirectory(tmp_path):
        pass
    agent.close()


def test_the_newest_checkpoint_of_a_killed_run_is_whole(tmp_path):
    run = tmp_path / "run"
    process = start("train", "CartPole-v1", "--run-dir", run, *TINY, *LONG, "--train.checkpoint_every", 32)
    process.wait_until(lambda: len(saved_steps(run)) == 3)
    process.send(signal.SIGKILL)
    process.wait()
    for path in RunDirectory(run).saved():
        assert read_checkpoint(path)["progress"]["step"] == int(path.stem.removeprefix("step_"))


@pytest.mark.parametrize("raises", [False, True])
def test_a_process_that_an_env_forks_does_not_continue_the_run(tmp_path, raises):
    """It inherits the lock: without a check, both write the same checkpoints and metrics."""
    run = tmp_path / "run"
    forks = ("--rollout.engine", "local", "--env.kwargs", json.dumps({"at": 20, "raises": raises}))
    finished = surefoot("train", f"{ENVS}:Forking-v0", *TINY, *forks, "--run-dir", run, "--steps", 128)
    assert finished.code == 0, finished.err
    assert "cannot continue in a forked process" in finished.err
    assert "saved at step" not in finished.err
    assert column(run, "step") == [32, 64, 96, 128]
    assert saved_steps(run) == [128]
