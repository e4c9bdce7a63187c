"""stdout and stderr fail for real: full, closed, without Unicode, a reader that is gone. No run ends for that."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.processes import Process, surefoot
from tests.cli.runs import TINY, column, saved_steps, train

SCRIPT = Path(sys.executable).with_name("surefoot")
ENVS = "tests.cli.odd_envs"
RUN = ("--steps", 96, "--train.eval_episodes", 2)


def run_with(out: str, err: str, arguments: list[str]) -> None:
    """`surefoot ARGUMENTS` with streams that fail in these ways; an empty name leaves one as it is."""
    from surefoot.cli.main import main

    for number, name, how in ((1, "stdout", out), (2, "stderr", err)):
        if how == "full":
            os.dup2(os.open("/dev/full", os.O_WRONLY), number)
        elif how == "gone":
            read, write = os.pipe()
            os.dup2(write, number)
            os.close(read)
            os.close(write)
        elif how == "ascii":
            getattr(sys, name).reconfigure(encoding="ascii", errors="strict")
        elif how == "closed":  # as the interpreter finds it
            os.close(number)
            setattr(sys, name, None)
    sys.exit(main(arguments))


def started(out: str, err: str, *arguments: object) -> Process:
    return Process(run_with, out, err, [str(argument) for argument in arguments])


@pytest.mark.parametrize(
    ("out", "err", "told"),
    [
        ("full", "", "stdout failed ([Errno 28] No space left on device)"),
        ("gone", "", "stdout failed ([Errno 32] Broken pipe)"),
        ("closed", "closed", ""),
        ("full", "full", "stdout failed"),
        ("", "gone", ""),
    ],
)
def test_a_run_does_not_need_its_terminal(tmp_path, out, err, told):
    run = tmp_path / "run"
    finished = started(out, err, "train", "CartPole-v1", "--run-dir", run, *TINY, *RUN).wait().succeeded()
    assert saved_steps(run) == [96]
    assert column(run, "step") == [32, 64, 96]
    assert told in (run / "log.txt").read_text()
    assert finished.err == ""


def test_a_terminal_without_unicode(tmp_path):
    run = tmp_path / "run"
    finished = started("ascii", "ascii", "train", "CartPole-v1", "--run-dir", run, *TINY, *RUN).wait().succeeded()
    assert " ? " in finished.out, "plus or minus"
    shown = started("ascii", "", "evaluate", run, "--episodes", 2).wait().succeeded().out
    assert "mean reward " in shown


def test_the_interpreter_itself_has_nothing_to_complain_about_at_its_end(tmp_path):
    """From a shell: a closed stdout must not become the descriptor of a file, and a full one not exit code 120."""
    arguments = f"train CartPole-v1 {' '.join(map(str, (*TINY, '--steps', 64)))}"
    for name, streams in (("closed", "<&- >&-"), ("full", ">/dev/full 2>/dev/full")):
        run = tmp_path / name
        done = subprocess.run(
            ["bash", "-c", f"{SCRIPT} {arguments} --run-dir {run} {streams}"], stderr=subprocess.PIPE, check=False
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert column(run, "step") == [32, 64]
        assert (run / "lock").read_text().isdecimal()


@pytest.mark.parametrize("engine", ["local", "processes"])
def test_what_an_env_prints_is_not_worth_a_run(tmp_path, engine):
    run = tmp_path / "run"
    settings = ("--rollout.engine", engine, "--rollout.workers", 1, "--steps", 64)
    started("gone", "", "train", f"{ENVS}:Talking-v0", "--run-dir", run, *TINY, *settings).wait().succeeded()
    assert column(run, "step") == [32, 64]
    assert column(run, "rollout/worker_restarts") in ([], [0, 0])


def test_where_the_output_is_the_result_a_full_disk_is_an_error(tmp_path):
    run = tmp_path / "run"
    train("CartPole-v1", run, *TINY, "--steps", 32)
    for command in (["presets"], ["envs"], ["evaluate", run, "--json"], ["doctor", run], ["--version"]):
        message = started("full", "", *command).wait().refused()
        assert message == "error: cannot write to stdout: [Errno 28] No space left on device\n"
        assert "it is closed" in started("closed", "", *command).wait().refused()
        finished = started("gone", "", *command).wait()
        assert (finished.code in (0, 1), finished.err) == (True, "")
    assert surefoot("presets").succeeded().out
