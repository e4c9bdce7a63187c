"""Jobs as processes of this machine."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from typing import IO

from surefoot.jobs.job import Job, JobDiedError, Message

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
