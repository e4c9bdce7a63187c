"""A subject in a separate process, with its own RAM, threads and child processes."""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any

from surefoot.benchmark.host import GRACE_S
from surefoot.benchmark.process_tree import PeakRam
from surefoot.benchmark.subject import Plan, Window
from surefoot.errors import SurefootError
from surefoot.jobs.local import environment, last_line

ANSWER_WITHIN_S = 900.0
"""Timeout of an answer: dozens of processes that import torch on two cores take minutes to start."""


class SubjectError(SurefootError):
    """A subject could not be built, raised an exception, died or hung."""


class SubjectProcess:
    """Started by its constructor; call `build`, `run` any number of times, then `close`."""

    def __init__(self, plan: Plan) -> None:
        self.name = plan.name
        self._recipe, self._is_built = plan.recipe, False
        self._stderr = tempfile.TemporaryFile(mode="w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "surefoot.benchmark.host"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=environment(plan.threads),
            start_new_session=True,  # all its child processes can be found and stopped together
            bufsize=0,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._commands, self._answers = self._process.stdin, self._process.stdout
        self.ram = PeakRam(self.pid)

    @property
    def pid(self) -> int:
        """Id of the process, its session and its group."""
        return self._process.pid

    def build(self) -> str | None:
        """Build the subject while sampling its RAM; returns the engine that it uses, if any."""
        engine: str | None = self._ask({"build": self._recipe}, watch_ram=True)["engine"]
        self._is_built = True
        return engine

    def warm_up(self, iterations: int) -> Window:
        """Run untimed while sampling RAM, which takes time."""
        return Window(**self._ask({"run": iterations}, watch_ram=True))

    def run(self, iterations: int) -> Window:
        """Run while this process is idle; then sample RAM once."""
        window = Window(**self._ask({"run": iterations}, watch_ram=False))
        self.ram.sample()
        return window

    def close(self, gently: bool = True) -> None:
        """Stop the process and its children: ask it to close first, then kill it."""
        if gently or self._is_built:  # a process that is still starting has nothing to close, and may miss an interrupt
            with contextlib.suppress(OSError):
                if gently:
                    self._send({"close": True})
                else:
                    self._process.send_signal(signal.SIGINT)
            self._wait_for_end(GRACE_S)
        # Before the leader is reaped, so that the group id is still valid.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._commands, self._answers, self._stderr):
            with contextlib.suppress(OSError):
                pipe.close()

    def _ask(self, command: dict[str, Any], watch_ram: bool) -> dict[str, Any]:
        try:
            self._send(command)
        except OSError as error:
            raise SubjectError(self._last_words()) from error
        self._wait_for_answer(watch_ram)
        line = self._answers.readline()
        if not line:
            raise SubjectError(self._last_words())
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise SubjectError(answer["error"])
        return answer

    def _send(self, command: dict[str, Any]) -> None:
        self._commands.write(json.dumps(command).encode() + b"\n")

    def _wait_for_answer(self, watch_ram: bool) -> None:
        deadline = time.monotonic() + ANSWER_WITHIN_S
        while not self._is_readable(self.ram.pause_s if watch_ram else ANSWER_WITHIN_S):
            if time.monotonic() > deadline:
                raise SubjectError(f"did not answer within {ANSWER_WITHIN_S:.0f} s")
            if watch_ram:
                self.ram.sample()

    def _wait_for_end(self, patience_s: float) -> None:
        deadline = time.monotonic() + patience_s
        while (left := deadline - time.monotonic()) > 0 and self._is_readable(left):
            if not self._answers.read(65536):
                return

    def _is_readable(self, patience_s: float) -> bool:
        return bool(select.select([self._answers], [], [], patience_s)[0])

    def _last_words(self) -> str:
        """The error of a process that ended unexpectedly."""
        try:
            code = self._process.wait(GRACE_S)
        except subprocess.TimeoutExpired:  # its end of the pipe is closed, but it still runs
            return "its process stopped answering"
        return f"its process exited with code {code}{last_line(self._stderr)}"
