"""Stands in for `subprocess` where jobs and subjects are started: they are forked from tests.cli.processes' server."""

import importlib
import multiprocessing
import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import surefoot.benchmark.subject_process
import surefoot.jobs.local
from tests.cli.processes import Process, context

PIPE = None
_MODULES = ("surefoot.jobs.child", "surefoot.benchmark.host")
_LOCK = threading.Lock()
"""Whoever asks first how a process ended is told; multiprocessing asks for all whenever one starts."""


class Popen:
    """A job or a subject that talks through named pipes."""

    def __init__(self, command: list[str], *, stderr: Any, env: dict[str, str], text: bool = False, **how: Any) -> None:
        assert command[-1] in _MODULES
        with tempfile.TemporaryDirectory(prefix="surefoot-job-") as folder:
            pipes = [Path(folder, name) for name in ("in", "out")]
            for pipe in pipes:
                os.mkfifo(pipe)
            arguments = (*map(str, pipes), f"/proc/{os.getpid()}/fd/{stderr.fileno()}", env, command[-1])
            self._process = context.Process(target=_run, args=arguments, daemon=True)
            with _LOCK:
                self._process.start()
            kind: dict[str, Any] = {"encoding": "utf-8"} if text else {"buffering": 0}
            mode = "" if text else "b"
            self.stdin, self.stdout = pipes[0].open(f"w{mode}", **kind), pipes[1].open(f"r{mode}", **kind)
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        with _LOCK:
            return self._process.exitcode

    def wait(self, timeout: float = float("inf")) -> int:
        deadline = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise TimeoutExpired
            time.sleep(0.002)
        return code

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)


class TimeoutExpired(Exception):  # noqa: N818
    """As in `subprocess`."""


def _run(given: str, said: str, errors: str, env: dict[str, str], module: str) -> None:
    os.setsid()
    multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined]  # it may have children
    os.environ |= env
    for number, (file, flags) in enumerate([(given, os.O_RDONLY), (said, os.O_WRONLY), (errors, os.O_WRONLY)]):
        os.dup2(os.open(file, flags), number)
    sys.exit(importlib.import_module(module).main())


def fork_jobs() -> None:
    """From now on, in this process."""
    surefoot.jobs.local.subprocess = sys.modules[__name__]  # type: ignore[assignment]
    surefoot.benchmark.subject_process.subprocess = sys.modules[__name__]  # type: ignore[assignment]


def start(*arguments: object) -> Process:
    """`surefoot ARGUMENTS`, left running."""
    return Process(_with_forked_jobs, [str(argument) for argument in arguments])


def _with_forked_jobs(arguments: list[str]) -> None:
    from surefoot.cli.main import main

    fork_jobs()
    sys.exit(main(arguments))
