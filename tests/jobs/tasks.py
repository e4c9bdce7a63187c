"""Tasks of jobs."""

import os
import signal
import time
from pathlib import Path
from typing import Any

from surefoot.errors import EnvError
from surefoot.jobs.job import Say


def count(arguments: dict[str, Any], say: Say) -> dict[str, Any]:
    for number in range(arguments["to"]):
        say({"number": number})
    return {"counted": arguments["to"]}


def fail(arguments: dict[str, Any], say: Say) -> None:
    raise EnvError("the environment is broken")


def die(arguments: dict[str, Any], say: Say) -> None:
    say({"pid": os.getpid()})
    os.kill(os.getpid(), signal.SIGKILL)


def wait(arguments: dict[str, Any], say: Say) -> int:
    """Until a file exists."""
    say({"pid": os.getpid()})
    while not Path(arguments["file"]).exists():
        time.sleep(0.02)
    return os.getpid()
