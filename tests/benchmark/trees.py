"""Processes that tests start and watch."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psutil

PATIENCE_S = 60
MEGABYTE = 2**20


@contextmanager
def script(code: str) -> Iterator[subprocess.Popen[bytes]]:
    """Python code in a session of its own, once it has printed its first line."""
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        process.stdout.readline()
        yield process
    finally:
        os.killpg(process.pid, 9)
        process.wait()
        process.stdin.close()
        process.stdout.close()


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Until something is true that others bring about."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"never happened: {what}"
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    """Alive, and no zombie either."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
