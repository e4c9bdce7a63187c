"""`surefoot` itself: help, version, commands that do not exist."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from surefoot.cli.main import COMMANDS, main
from surefoot.settings.config import known_keys
from tests.cli.processes import surefoot

SCRIPT = Path(sys.executable).with_name("surefoot")


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_lists_every_command(capsys, flag):
    assert main([flag]) == 0
    shown = capsys.readouterr().out
    for command, meaning in COMMANDS.items():
        assert f"  {command}" in shown
        assert meaning in shown


def test_nothing_at_all_shows_the_help_and_fails(capsys):
    assert main([]) == 2
    assert "usage: surefoot COMMAND" in capsys.readouterr().out


def test_version(capsys):
    import surefoot

    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"surefoot {surefoot.__version__}\n"


@pytest.mark.parametrize(("typed", "meant"), [("trian", "train"), ("eval", "evaluate"), ("preset", "presets")])
def test_an_unknown_command_suggests_the_nearest(capsys, typed, meant):
    assert main([typed]) == 2
    shown = capsys.readouterr()
    assert shown.err == f"error: unknown command '{typed}'; did you mean '{meant}'? (see surefoot --help)\n"
    assert shown.out == ""


def test_nothing_near_suggests_nothing(capsys):
    assert main(["xyzzy"]) == 2
    assert "did you mean" not in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command):
    finished = surefoot(command, "--help").succeeded()
    assert f"usage: surefoot {command}" in finished.out


@pytest.mark.parametrize("command", ["train", "resume"])
def test_help_shows_every_setting_with_its_meaning(command):
    shown = surefoot(command, "--help").succeeded().out
    for key, meaning in known_keys().items():
        assert f"--{key} " in shown
        assert meaning
        assert meaning in shown


@pytest.mark.parametrize("command", COMMANDS)
def test_unknown_options_are_refused(command):
    finished = surefoot(command, "CartPole-v1", "--nonsense", "1")
    assert finished.code == 2
    assert "Traceback" not in finished.err


def test_help_and_errors_do_not_wait_for_torch():
    commands = "main(['--help']); main(['trian']); main(['evaluate', 'nothing']); print('torch' in sys.modules)"
    code = f"import sys; from surefoot.cli.main import main; {commands}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("False\n")


def test_a_reader_that_stops_reading_is_no_error():
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {SCRIPT} envs | head -1"], capture_output=True, text=True, env={**os.environ}
    )
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""
    assert done.returncode == 0
