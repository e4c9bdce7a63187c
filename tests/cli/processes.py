"""The real command line, and any function, in processes of their own.

They are forked from a server that has imported torch once and run nothing, so that a new process costs a tenth of a
second and still shares nothing with the tests.
"""

import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing import forkserver
from pathlib import Path
from types import MappingProxyType
from typing import Any

import psutil
import torch

_IMPORTS = [
    *("surefoot.api", "surefoot.cli.resume", "surefoot.cli.train"),
    *("pytest", "tensorboard.summary.writer.event_file_writer"),
]
context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(_IMPORTS)
_PATIENCE_S = 120


@dataclass(frozen=True)
class Finished:
    """How a process ended; `code` is negative for a signal that killed it."""

    code: int
    out: str
    err: str

    def succeeded(self) -> "Finished":
        assert self.code == 0, self.err
        assert "Traceback" not in self.err, self.err
        return self

    def refused(self) -> str:
        """The one message of a typed error."""
        assert self.code == 2, (self.code, self.out, self.err)
        assert self.err.startswith("error: "), self.err
        assert self.err.count("error: ") == 1, self.err
        assert "Traceback" not in self.err, self.err
        return self.err


class Process:
    """A function in a process of its own."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="surefoot-")
        out, err = (Path(self._folder.name) / name for name in ("out", "err"))
        self._outputs = (out, err)
        # A daemon: a test that fails must not leave it running.
        arguments = (function, arguments, os.fspath(out), os.fspath(err))
        self._process = context.Process(target=_call, args=arguments, daemon=True)
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def is_alive(self) -> bool:
        return self._process.is_alive()

    def send(self, number: int) -> None:
        os.kill(self.pid, number)

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Until something is true that this process brings about."""
        deadline = time.monotonic() + _PATIENCE_S
        while not condition():
            assert self.is_alive(), self.wait()
            assert time.monotonic() < deadline, "it never happened"
            time.sleep(0.001)

    def wait(self) -> Finished:
        self._process.join(_PATIENCE_S)
        hung = self._process.exitcode is None
        if hung:
            self._process.kill()
            self._process.join()
        out, err = (file.read_text(errors="replace") if file.exists() else "" for file in self._outputs)
        self._folder.cleanup()
        assert self._process.exitcode is not None
        assert not hung, f"it hung: {out} {err}"
        return Finished(self._process.exitcode, out, err)


def start(*arguments: object) -> Process:
    """`surefoot ARGUMENTS`, left running."""
    return Process(_surefoot, [str(argument) for argument in arguments])


def surefoot(*arguments: object) -> Finished:
    """`surefoot ARGUMENTS`, to its end."""
    return start(*arguments).wait()


def surefoot_with(variables: dict[str, str], *arguments: object) -> Finished:
    """The same with variables of the environment that are read when MuJoCo is first imported."""
    return Process(_surefoot, [str(argument) for argument in arguments], variables).wait()


def with_little_memory(megabytes: int, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function that may take so much more address space and no more."""
    limit = psutil.Process().memory_info().vms + megabytes * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    return function(*arguments)


def _surefoot(arguments: list[str], variables: Mapping[str, str] = MappingProxyType({})) -> None:
    assert not variables or "mujoco" not in sys.modules, "it has read them"
    os.environ.update(variables)
    from surefoot.cli.main import main

    sys.exit(main(arguments))


def _call(function: Callable[..., Any], arguments: tuple[Any, ...], out: str, err: str) -> None:
    for number, file in ((1, out), (2, err)):
        os.dup2(os.open(file, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644), number)
    # Ignored where tests are a shell's background job or run under nohup.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    torch.set_num_threads(1)
    # It may start processes, too, from the same server.
    multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined]
    forkserver._forkserver.ensure_running = lambda: None
    function(*arguments)
