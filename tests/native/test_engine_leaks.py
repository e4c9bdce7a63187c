"""Engines come and go: nothing of them stays behind, and a forked child is told what it cannot do."""

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from surefoot.errors import NativeError
from surefoot.native import core

if TYPE_CHECKING:
    from surefoot.native import Engine

ROWS, THREADS = 32, 3


def open_engine() -> "Engine":
    return core().Engine("CartPole-v1", {}, ROWS, THREADS, 50)


def use(engine: "Engine", steps: int = 3) -> None:
    obs, final_obs = [np.zeros((ROWS, 4))], [np.zeros((ROWS, 4))]
    flags = {"terminated": np.zeros(ROWS, bool), "truncated": np.zeros(ROWS, bool)}
    seeds = np.arange(4 * ROWS, dtype=np.uint64).reshape(ROWS, 4)
    engine.reset(seeds, obs, None)
    for step in range(steps):
        actions = np.full((ROWS, 1), step % 2, dtype=np.int64)
        engine.step(actions, obs, final_obs, {"reward": np.zeros(ROWS), **flags}, None)
    engine.load(engine.save())


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def count(folder: str) -> int:
    return len(os.listdir(folder))


def test_a_thousand_engines_leave_nothing_behind() -> None:
    for _ in range(200):  # fills the allocator's pools and the stacks that threads leave for the next
        use(open_engine())
    gc.collect()
    threads, files, memory = count("/proc/self/task"), count("/proc/self/fd"), resident_bytes()
    for _ in range(1000):
        use(open_engine())
    gc.collect()
    assert count("/proc/self/task") == threads
    assert count("/proc/self/fd") == files
    assert resident_bytes() - memory < 2_000_000  # one row's state a cycle would be more


def test_an_open_engine_has_as_many_threads_as_it_was_given() -> None:
    before = count("/proc/self/task")
    engine = open_engine()
    use(engine)
    assert count("/proc/self/task") == before + THREADS - 1  # the caller is one of them
    del engine
    assert count("/proc/self/task") == before


def in_child(work: Callable[[], str]) -> str:
    """What a forked child says; one that hangs is killed and says nothing."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        said = "it died"
        try:
            said = work()
        finally:
            os.write(writing, said.encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    assert os.waitpid(child, 0)[1] == 0, "the child hung"
    return said


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_is_told_that_the_threads_stayed_behind() -> None:
    engine = open_engine()
    use(engine)

    def work() -> str:
        try:
            use(engine)
        except NativeError as error:
            return str(error)
        return "no error"

    said = in_child(work)
    assert "was forked while the native engine was open" in said
    assert "'spawn'" in said
    use(engine)  # the parent's goes on


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_can_drop_its_parents_engine_and_open_its_own() -> None:
    engines = [open_engine()]
    use(engines[0])

    def work() -> str:
        engines.clear()
        gc.collect()
        use(open_engine())
        return "done"

    assert in_child(work) == "done"
    use(engines[0])


def test_more_threads_than_the_system_has_is_an_error() -> None:
    code = (
        "import resource; from surefoot.native import core; core()\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + 2**28, used + 2**28))\n"
        "try:\n    core().Engine('CartPole-v1', {}, 4, 10_000, 50)\n"
        "except RuntimeError as error:\n    print('refused:', error)\n"
        "core().Engine('CartPole-v1', {}, 4, 2, 50)\nprint('goes on')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("refused:"), done.stderr
    assert "goes on" in done.stdout
