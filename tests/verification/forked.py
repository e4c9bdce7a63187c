"""The new process of `verify`, forked where torch is imported already; test_resuming.py starts the real one."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from surefoot.verification.resumed import main
from surefoot.verification.resuming import _CONFIG, Interrupted
from tests.cli.processes import Process


class Forked:
    """What `verify` asks of a process."""

    def __init__(self, run: Interrupted) -> None:
        self._process = Process(main, run.folder, run.engine)
        self.returncode: int | None = None

    def communicate(self, timeout: float) -> tuple[bytes, bytes]:
        finished = self._process.wait()
        self.returncode = finished.code
        return finished.out.encode(), finished.err.encode()


@contextmanager
def forked(run: Interrupted) -> Iterator[Any]:
    """In place of surefoot.verification.resuming.new_process."""
    (run.folder / _CONFIG).write_text(run.subject.config.model_dump_json())
    yield Forked(run)
