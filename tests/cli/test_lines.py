"""Lines wrap between words on a terminal, and not at all in a file."""

import os
import pty
import subprocess
import sys
from contextlib import suppress

import pytest

SCRIPT = """
from surefoot.cli.lines import tell, tell_next, wrapped
tell("evaluated", "500.0 ± 0.0 over 10 episodes (95% interval of the mean 500.0 to 500.0), length 500")
tell("newest", "a-folder-with-a-long-name/and-another-one/checkpoints/step_000000090112.safetensors")
print(wrapped("stopped at step 1024; everything is saved; 'surefoot resume runs/a-long-name' continues it", 10))
tell_next(("surefoot", "evaluate", "a folder with a long name/and-another-one"), ("tensorboard", "--logdir", "runs"))
"""


def test_in_a_file():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert [len(line) for line in done.stdout.splitlines()] == [92, 93, 90, 71, 35]


def on_a_terminal(script: str, columns: int) -> list[str]:
    leader, follower = pty.openpty()
    settings = {"COLUMNS": str(columns), "PYTHONIOENCODING": "utf-8"}
    with subprocess.Popen([sys.executable, "-c", script], stdout=follower, env={**os.environ, **settings}) as process:
        os.close(follower)
        shown = b""
        with suppress(OSError):  # the end of what a terminal shows
            while part := os.read(leader, 4096):
                shown += part
        os.close(leader)
        assert process.wait() == 0
    return shown.decode().replace("\r", "").splitlines()


@pytest.mark.parametrize("command", ["zoo", "presets"])
def test_tables_fit_into_the_terminal(command):
    script = f"from surefoot.cli.main import main; main(['{command}'])"
    narrow, wide = (on_a_terminal(script, columns) for columns in (60, 240))
    assert 40 < max(map(len, narrow)) <= 60 < max(map(len, wide))
    assert all(any(line.startswith(name) for line in narrow) for name in {line.split()[0] for line in wide if line})


def test_on_a_narrow_terminal():
    assert on_a_terminal(SCRIPT, 60) == [
        "evaluated 500.0 ± 0.0 over 10 episodes (95% interval of the",
        "          mean 500.0 to 500.0), length 500",
        "newest",
        "          a-folder-with-a-long-name/and-another-one/checkpoints/step_000000090112.safetensors",
        "stopped at step 1024; everything is saved;",
        "          'surefoot resume runs/a-long-name' continues it",
        "next      surefoot evaluate 'a folder with a long name/and-another-one'",
        "          tensorboard --logdir runs",
    ]
