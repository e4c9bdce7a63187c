"""A subject in a process of its own, with RAM, threads and child processes of its own."""

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
from surefoot.benchmark.peak_ram import PeakRam
from surefoot.benchmark.recipe import Plan
from surefoot.benchmark.window import Window
from surefoot.core.errors import SurefootError

ANSWER_WITHIN_S = 900.0
"""Dozens of processes that import torch on two cores take minutes to start."""
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class SubjectError(SurefootError):
    """A subject could not be built, raised, died or hung."""


class SubjectProcess:
    """Started by its constructor; `build`, `run` any number of times, `close`."""

    def __init__(self, plan: Plan) -> None:
        self.name = plan.name
        self._recipe, self._is_built = plan.recipe, False
        self._stderr = tempfile.TemporaryFile(mode="w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "surefoot.benchmark.host"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=_environment(plan.threads),
            start_new_session=True,  # all it starts can be found and ended together
            bufsize=0,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._commands, self._answers = self._process.stdin, self._process.stdout
        self.ram = PeakRam(self.pid)

    @property
    def pid(self) -> int:
        """Of the process, its session and its group."""
        return self._process.pid

    def build(self) -> str | None:
        """Make the subject, watching its RAM; the engine that it got, if it has one."""
        engine: str | None = self._ask({"build": self._recipe}, watch_ram=True)["engine"]
        self._is_built = True
        return engine

    def warm_up(self, iterations: int) -> Window:
        """Run without taking the time seriously: this is when RAM is sampled, which costs time."""
        return Window(**self._ask({"run": iterations}, watch_ram=True))

    def run(self, iterations: int) -> Window:
        """Run while nobody, this process included, does anything else; then look at its RAM once."""
        window = Window(**self._ask({"run": iterations}, watch_ram=False))
        self.ram.sample()
        return window

    def close(self, gently: bool = True) -> None:
        """End it and all that it started: asked to close first, then killed."""
        if gently or self._is_built:  # one that is still starting has nothing to close, and may miss an interrupt
            with contextlib.suppress(OSError):
                if gently:
                    self._send({"close": True})
                else:
                    self._process.send_signal(signal.SIGINT)
            self._wait_for_end(GRACE_S)
        # Before the leader is reaped, so that the group's number still is its own.
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
                raise SubjectError(f"gave no answer within {ANSWER_WITHIN_S:.0f} s")
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
        """What a process that ended by itself left behind."""
        try:
            code = self._process.wait(GRACE_S)
        except subprocess.TimeoutExpired:  # its end of the pipe is closed, it is not
            return "its process stopped answering"
        self._stderr.seek(0)
        lines = [line.strip() for line in self._stderr.read().splitlines() if line.strip()]
        return f"its process ended with code {code}" + (f": {lines[-1]}" if lines else "")


def _environment(threads: int | None) -> dict[str, str]:
    """Ours, with the modules that can be imported here, and the threads that numeric libraries may use."""
    limits = {} if threads is None else dict.fromkeys(_THREAD_VARIABLES, str(threads))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path), **limits}
