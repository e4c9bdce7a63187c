"""Stands in for `subprocess` in `surefoot.jobs.local`: jobs are forked from the server of `tests.cli.processes`."""

import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import surefoot.jobs.local
from surefoot.jobs.child import main
from tests.cli.processes import Process, context

PIPE = None
_LOCK = threading.Lock()
"""Whoever asks first how a process ended is told; multiprocessing asks for all whenever one starts."""


class Popen:
    """A job that talks through named pipes."""

    def __init__(self, command: list[str], *, stderr: Any, env: dict[str, str], **how: Any) -> None:
        assert command[-1] == "surefoot.jobs.child"
        with tempfile.TemporaryDirectory(prefix="surefoot-job-") as folder:
            pipes = [Path(folder, name) for name in ("in", "out")]
            for pipe in pipes:
                os.mkfifo(pipe)
            arguments = (*map(str, pipes), f"/proc/{os.getpid()}/fd/{stderr.fileno()}", env)
            self._process = context.Process(target=_run, args=arguments, daemon=True)
            with _LOCK:
                self._process.start()
            self.stdin, self.stdout = pipes[0].open("w", encoding="utf-8"), pipes[1].open(encoding="utf-8")
        self.pid = self._process.pid

    def poll(self) -> int | None:
        with _LOCK:
            return self._process.exitcode

    def wait(self) -> int:
        while (code := self.poll()) is None:
            time.sleep(0.002)
        return code


def _run(given: str, said: str, errors: str, env: dict[str, str]) -> None:
    os.setsid()
    os.environ |= env
    for number, (file, flags) in enumerate([(given, os.O_RDONLY), (said, os.O_WRONLY), (errors, os.O_WRONLY)]):
        os.dup2(os.open(file, flags), number)
    sys.exit(main())


def fork_jobs() -> None:
    """From now on, in this process."""
    surefoot.jobs.local.subprocess = sys.modules[__name__]  # type: ignore[assignment]


def start(*arguments: object) -> Process:
    """`surefoot ARGUMENTS`, left running."""
    return Process(_with_forked_jobs, [str(argument) for argument in arguments])


def _with_forked_jobs(arguments: list[str]) -> None:
    from surefoot.cli.main import main

    fork_jobs()
    sys.exit(main(arguments))
