"""Jobs on this machine: as processes, or in this process."""

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import IO

from surefoot.jobs.job import Job, JobDiedError, Message, result_of
from surefoot.output.failures import brief

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def environment(threads: int | None) -> dict[str, str]:
    """The environment variables of this process, with its import path and the thread limits of numeric libraries."""
    limits = {} if threads is None else dict.fromkeys(THREAD_VARIABLES, str(threads))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path), **limits}


def last_line(stderr: IO[str]) -> str:
    """The last words of a process that ended, as the end of a message; empty if there are none."""
    stderr.seek(0)
    lines = [line.strip() for line in stderr.read().splitlines() if line.strip()]
    return f": {lines[-1]}" if lines else ""


class LocalStream:
    """A process of its own, in a session of its own: Ctrl-C reaches only this process, which then stops the job."""

    def __init__(self, job: Job) -> None:
        self._stderr = tempfile.TemporaryFile(mode="w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "surefoot.jobs.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=environment(job.threads),
            start_new_session=True,
            text=True,
        )
        with suppress(OSError):  # it died at once: iterating says so
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(job.to_json()) + "\n")
            self._process.stdin.flush()

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    def __iter__(self) -> Iterator[Message]:
        assert self._process.stdout is not None
        is_done = False
        try:
            for line in self._process.stdout:
                if not line.endswith("\n"):  # it died while it wrote
                    break
                message: Message = json.loads(line)
                is_done = "progress" not in message
                yield message
                if is_done:
                    return
            raise JobDiedError(self._last_words())
        finally:
            self.close()

    def ask_to_stop(self) -> None:
        """Its process sees that nobody writes to it any more, and sends itself a signal."""
        with suppress(OSError, ValueError):
            assert self._process.stdin is not None
            self._process.stdin.close()

    def kill(self) -> None:
        """End the process at once, with the processes that it started: they could keep the pipe open."""
        with suppress(OSError):
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """Ask the job to stop, and wait until it has: a run saves itself before it ends."""
        self.ask_to_stop()
        with suppress(OSError, ValueError):
            assert self._process.stdout is not None
            self._process.stdout.close()
        self._process.wait()
        self._stderr.close()

    def _last_words(self) -> str:
        code = self._process.wait()
        how = f"was ended by signal {-code}" if code < 0 else f"exited with code {code}"
        return f"its process {how}{last_line(self._stderr)}"


class LocalBackend:
    """Processes of this machine."""

    def start(self, job: Job) -> LocalStream:
        """Start the process of a job."""
        return LocalStream(job)

    def close(self) -> None:
        """Nothing to release."""


class InlineStream:
    """A job in a thread: nothing is imported again, and a debugger sees it. A crash takes everything with it."""

    def __init__(self, job: Job) -> None:
        self._messages: queue.SimpleQueue[Message] = queue.SimpleQueue()
        threading.Thread(target=self._work, args=(job,), daemon=True).start()

    def __iter__(self) -> Iterator[Message]:
        while True:
            message = self._messages.get()
            yield message
            if "progress" not in message:
                return

    def ask_to_stop(self) -> None:
        """The signal reached this process, and with it the job."""

    def kill(self) -> None:
        """A thread cannot be ended; it works until the process ends."""

    def _work(self, job: Job) -> None:
        try:
            last = result_of(job, lambda progress: self._messages.put({"progress": progress}))
        except BaseException as error:  # a process of its own would end: SystemExit after a signal
            last = {"error": brief(error)}
        self._messages.put(last)


class InlineBackend:
    """Threads of this process; for one job at a time, because runs share the number of PyTorch's threads."""

    def start(self, job: Job) -> InlineStream:
        """Start a job."""
        return InlineStream(job)

    def close(self) -> None:
        """Nothing to release."""
