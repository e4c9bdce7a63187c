"""Jobs for tests; they need no torch."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from surefoot.errors import ConfigError


def add(arguments: dict[str, Any], say: Any) -> int:
    say({"share": 0.5})
    print("what a job prints is not a message")
    return arguments["a"] + arguments["b"]


def threads(arguments: dict[str, Any], say: Any) -> str:
    return os.environ["OMP_NUM_THREADS"]


def refuse(arguments: dict[str, Any], say: Any) -> None:
    raise ConfigError(["optimizer.lr: must be above 0"])


def crash(arguments: dict[str, Any], say: Any) -> None:
    raise ZeroDivisionError("division of 1 by 0")


def exit_early(arguments: dict[str, Any], say: Any) -> None:
    sys.exit("no memory left")


def count_up(arguments: dict[str, Any], say: Any) -> int:
    """Continues where it stopped; dies after every step."""
    file = Path(arguments["file"])
    count = int(file.read_text()) if file.exists() else 0
    if count == arguments["until"]:
        return count
    file.write_text(str(count + 1))
    if arguments.get("says"):
        say({"step": count + 1 if arguments["says"] == "more" else 1})
    os.kill(os.getpid(), signal.SIGKILL)
    return -1


def hang_once(arguments: dict[str, Any], say: Any) -> str:
    """Hangs the first time, with a process of its own that holds its pipes."""
    file = Path(arguments["file"])
    if file.exists():
        return "awake"
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"], close_fds=False)
    file.write_text(str(child.pid))
    time.sleep(1000)
    return "never"


def save_on_signal(arguments: dict[str, Any], say: Any) -> None:
    def save(number: int, frame: Any) -> None:
        Path(arguments["file"]).write_text("saved")
        os._exit(0)

    signal.signal(signal.SIGTERM, save)
    say({"is_ready": True})
    time.sleep(1000)
