"""What `learn` shows: a line on a terminal and in a notebook, nothing elsewhere unless it is asked for."""

import os
import pty
import re
import subprocess
import sys
from typing import Any

import pytest

from surefoot import PPO
from surefoot.errors import ConfigError

TINY: dict[str, Any] = {
    "num_envs": 2,
    "num_steps": 16,
    "batch_size": 16,
    "epochs": 1,
    "hidden": [8],
    "eval_episodes": 0,
}
LEARN = f"""
from surefoot import PPO
agent = PPO("CartPole-v1", preset="none", **{TINY})
agent.learn(320)
agent.learn(320, progress=False)
print("silent")
"""


@pytest.mark.parametrize(
    ("settings", "progress", "expected"),
    [
        ({}, None, 0),
        ({}, False, 0),
        ({}, True, 1),
        ({"console": "plain"}, None, 1),
        ({"console": "plain"}, False, 0),
        ({"console": "off"}, None, 0),
        ({"console": "off"}, True, 1),
    ],
)
def test_into_a_pipe(settings, progress, expected, capsys):
    PPO("CartPole-v1", preset="none", **TINY, **settings).learn(32, progress=progress)
    out = capsys.readouterr().out
    assert len(out.splitlines()) == expected
    assert not expected or out.startswith("32/32 100.0%")


@pytest.mark.parametrize("progress", [1, "yes", 0])
def test_what_is_not_a_choice(progress):
    with pytest.raises(ConfigError, match=r"^learn: progress: pass True or False, not"):
        PPO("CartPole-v1", **TINY).learn(32, progress=progress)


@pytest.mark.parametrize(
    ("argument", "answer"),
    [("progress_bar", "pass progress=True or False"), ("callback", r"pass hooks=\[\.\.\.\]"), ("verbose", "progress=")],
)
def test_arguments_of_other_libraries(argument, answer):
    with pytest.raises(ConfigError, match=f"learn takes steps, run_dir, hooks and progress; .*{answer}"):
        PPO("CartPole-v1", **TINY).learn(32, **{argument: None})


def test_on_a_terminal():
    leader, follower = pty.openpty()
    settings = {"TERM": "xterm", "COLUMNS": "80", "PYTHONIOENCODING": "utf-8"}
    process = subprocess.Popen([sys.executable, "-c", LEARN], stdout=follower, env={**os.environ, **settings})
    os.close(follower)
    shown = b""
    try:
        while chunk := os.read(leader, 4096):
            shown += chunk
    except OSError:  # what Linux says when the other end is closed
        pass
    os.close(leader)
    assert process.wait() == 0
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    first, _, rest = plain.partition("320/320")
    assert "━" in first
    assert rest.splitlines()[-1] == "silent"
    assert len(rest.strip().splitlines()) == 2, "the second call shows nothing"


def test_in_a_notebook_one_output_is_replaced():
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3", env={**os.environ})
    outputs: list[dict[str, Any]] = []
    try:
        reply = client.execute_interactive(LEARN, timeout=120, output_hook=outputs.append)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert reply["content"]["status"] == "ok", reply["content"]
    kinds = [one["msg_type"] for one in outputs if one["msg_type"] not in ("status", "execute_input")]
    assert kinds[0] == "display_data"
    assert set(kinds[1:-1]) == {"update_display_data"}
    assert kinds[-1] == "stream"
    drawn = [one["content"]["data"] for one in outputs if "display_data" in one["msg_type"]]
    assert "320/320" in drawn[-1]["text/plain"]
    assert "return" in drawn[-1]["text/html"]
