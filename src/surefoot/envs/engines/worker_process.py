"""The parent's side of a worker: starts it, communicates with it, detects errors, crashes and hangs, and stops it."""

import mmap
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from typing import Any, NoReturn

import cloudpickle

from surefoot.envs.blueprint import Blueprint
from surefoot.envs.engines.block import anonymous_file
from surefoot.envs.engines.wire import (
    CALL,
    DONE,
    FAILURE,
    MAX_GROUPS,
    SIGNALS,
    STATUS_BYTES,
    Cell,
    Failure,
    Phase,
    read_message,
    send_message,
)
from surefoot.errors import EnvError

_COMMAND = "from surefoot.envs.engines.worker import main; main()"
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Limits numerical libraries to one thread per worker, because the workers already use all cores."""
_GROUPS = [bytes([group]) for group in range(MAX_GROUPS)]
_START_S = 60.0
"""Time limit before the first env call, while the interpreter starts and imports."""
_GRACE_S = 2.0
_DUMP_S = 0.5
_ACTIVITY = {
    Phase.IDLE: "idle",
    Phase.CONSTRUCTOR: "in the constructor of",
    Phase.RESET: "in reset of",
    Phase.STEP: "in step of",
    Phase.SNAPSHOT: "saving or restoring envs",
    Phase.PARAMETERS: "in set_parameters of",
}


class WorkerError(Exception):
    """A worker raised an exception, died or hung; `trace` is its traceback."""

    def __init__(self, message: str, trace: str) -> None:
        super().__init__(message)
        self.trace = trace


class WorkerProcess:
    """One worker; `descriptions` are the descriptions of its rows by group, as of the last reset."""

    def __init__(self, index: int, envs: Mapping[int, range], block_file: int, timeout_s: float) -> None:
        self.index, self.envs = index, envs
        self._block_file, self._timeout_s = block_file, timeout_s
        self._wait_s = min(1.0, max(timeout_s / 4, 0.001))
        self.descriptions: dict[int, list[str]] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._release = ExitStack()

    def start(self, blueprint: Blueprint) -> None:
        """Start the process and let it create its envs; `result` waits for the reply."""
        try:
            self._spawn()
        except OSError as error:
            self._release.close()
            raise EnvError(f"worker {self.index} could not be started: {error.strerror}") from error
        self.call("construct", blueprint, dict(self.envs))

    def _spawn(self) -> None:
        self._status_file, self._trace_file = anonymous_file("status"), anonymous_file("trace")
        for file in (self._status_file, self._trace_file):
            self._release.callback(os.close, file)
        os.truncate(self._status_file, STATUS_BYTES)
        self._status = memoryview(mmap.mmap(self._status_file, STATUS_BYTES)).cast("q")
        self._release.callback(self._status.release)
        self._connection, theirs = socket.socketpair()
        self._release.callback(self._connection.close)
        # After a timeout, check whether the worker still makes progress.
        wait = struct.pack("ll", *divmod(int(1e6 * self._wait_s), 1_000_000))
        self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, wait)
        files = (theirs.fileno(), self._block_file, self._status_file, self._trace_file)
        # The kernel ties a child to the thread that started it, and only the main thread lives as long as the process.
        dies_with_thread = threading.current_thread() is threading.main_thread()
        arguments = [*map(str, files), str(os.getpid()), str(int(dies_with_thread))]
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        # Blocked until the worker can handle them: Ctrl-C must not kill it during startup.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-u", "-P", "-c", _COMMAND, *arguments],
                pass_fds=files,
                stdin=subprocess.DEVNULL,
                env={**_ONE_THREAD, **os.environ, "PYTHONPATH": path},
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            theirs.close()

    def step(self, group: int) -> None:
        """Begin a step of a group; `wait` waits for it."""
        with suppress(BrokenPipeError, ConnectionResetError):  # a dead worker is detected while waiting for it
            self._connection.send(_GROUPS[group])

    def call(self, name: str, *arguments: Any) -> None:
        """Begin any other call; `result` waits for the reply."""
        with suppress(BrokenPipeError, ConnectionResetError):
            send_message(self._connection, CALL, (name, arguments), portable)

    def wait(self) -> None:
        """Wait for the step to finish."""
        try:
            kind = self._connection.recv(1)
        except (BlockingIOError, ConnectionResetError):
            kind = self._patiently()
        if kind != DONE:
            self._raise(kind)

    def result(self) -> Any:
        """Wait for the reply to a call."""
        kind = self._patiently()
        if kind in (b"", FAILURE):
            self._raise(kind)
        try:
            return read_message(self._connection)
        except (EOFError, ConnectionResetError):
            return self._raise(b"")

    def _patiently(self) -> bytes:
        """Wait while the worker makes progress: every single env call may take up to the timeout."""
        calls, waited_s = self._status[Cell.CALLS], 0.0
        while True:
            try:
                return self._connection.recv(1)
            except ConnectionResetError:
                return b""
            except BlockingIOError:
                # Counts waits instead of time, so that a suspended run (Ctrl-Z) continues normally.
                waited_s += self._wait_s
                if self._status[Cell.CALLS] != calls:
                    calls, waited_s = self._status[Cell.CALLS], 0.0
                elif self._process is not None and self._process.poll() is not None:
                    return b""  # dead, even if one of its child processes keeps the connection open
                elif waited_s > (self._timeout_s if calls else max(self._timeout_s, _START_S)):
                    raise self._hung() from None

    def _raise(self, kind: bytes) -> NoReturn:
        if kind == FAILURE:
            with suppress(EOFError, ConnectionResetError):
                failure: Failure = read_message(self._connection)
                where = "" if failure.names_env else self._where()
                raise WorkerError(failure.message + where, failure.traceback)
        raise WorkerError(f"worker {self.index} {self._ending()}{self._where()}", self._trace())

    def _ending(self) -> str:
        """How the process ended, if it did."""
        assert self._process is not None
        try:
            code = self._process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            return "closed its connection"
        if code >= 0:
            return f"exited with code {code}"
        known = {number.value: number.name for number in signal.Signals}
        hint = (
            " (killed from outside, possibly because the machine ran out of memory)" if code == -signal.SIGKILL else ""
        )
        return f"was killed by {known.get(-code, f'signal {-code}')}{hint}"

    def _hung(self) -> WorkerError:
        assert self._process is not None
        self._process.send_signal(signal.SIGUSR1)  # its fault handler writes a traceback
        time.sleep(_DUMP_S)
        message = f"worker {self.index} made no progress for {self._timeout_s:g} s{self._where()}"
        return WorkerError(f"{message}; raise rollout.engine.step_timeout_s if the env is just slow", self._trace())

    def _where(self) -> str:
        phase, group, row = (self._status[cell] for cell in (Cell.PHASE, Cell.GROUP, Cell.ROW))
        activity = _ACTIVITY[Phase(phase)]
        if phase in (Phase.IDLE, Phase.SNAPSHOT):
            return f" while {activity}"
        known = self.descriptions.get(group, [])
        who = known[row] if phase != Phase.CONSTRUCTOR and row < len(known) else f"env {self.envs[group].start + row}"
        return f" {activity} {who}"

    def _trace(self) -> str:
        written = os.pread(self._trace_file, 1 << 20, 0).decode(errors="replace")
        return written.partition("\nExtension modules:")[0].strip()

    def end(self, deadline: float = 0.0) -> None:
        """Wait for the process to exit until a deadline, then kill it; release all resources."""
        if self._process is None:
            return
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(max(0.0, deadline - time.monotonic()))
        self._process.kill()
        self._process.wait()
        self._process = None
        self._release.close()

    def ask_to_end(self) -> None:
        """Close this end of the socket, which tells the worker to exit."""
        if self._process is not None:
            with suppress(OSError):
                self._connection.shutdown(socket.SHUT_RDWR)


def deadline() -> float:
    """The deadline for workers to exit on their own."""
    return time.monotonic() + _GRACE_S


def portable(message: Any) -> bytes:
    """Whatever another process needs to create its envs; an EnvError if it cannot be sent."""
    try:
        return bytes(cloudpickle.dumps(message))
    except Exception as error:
        raise EnvError(
            f"the environment cannot be sent to a worker process ({error}); pass a factory that creates everything it"
            " needs, or set rollout.engine: local"
        ) from error
