"""Lines wrap between words on a terminal, and not at all in a file."""

import os
import pty
import subprocess
import sys

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


def test_on_a_narrow_terminal():
    leader, follower = pty.openpty()
    settings = {"COLUMNS": "60", "PYTHONIOENCODING": "utf-8"}
    with subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=follower, env={**os.environ, **settings}) as process:
        os.close(follower)
        process.wait()
    shown = os.read(leader, 4096).decode().replace("\r", "").splitlines()
    os.close(leader)
    assert shown == [
        "evaluated 500.0 ± 0.0 over 10 episodes (95% interval of the",
        "          mean 500.0 to 500.0), length 500",
        "newest",
        "          a-folder-with-a-long-name/and-another-one/checkpoints/step_000000090112.safetensors",
        "stopped at step 1024; everything is saved;",
        "          'surefoot resume runs/a-long-name' continues it",
        "next      surefoot evaluate 'a folder with a long name/and-another-one'",
        "          tensorboard --logdir runs",
    ]
