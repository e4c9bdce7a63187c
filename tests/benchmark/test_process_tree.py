"""RAM and processor time of whole trees, with real processes."""

import os

from surefoot.benchmark.process_tree import PeakRam, cpu_seconds, members, tree_ram
from tests.benchmark.trees import MEGABYTE, script, wait_until

SLEEPER = "import sys; print(flush=True); sys.stdin.read()"
TAKES_50 = f"held = bytearray(b'x') * {50 * MEGABYTE}; {SLEEPER}"
PARENT_OF_A_CHILD_THAT_TAKES_50 = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {TAKES_50!r}], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline()
{SLEEPER}
"""
SHARES_50_WITH_TWO_CHILDREN = f"""
import mmap, os, sys, time
shared = mmap.mmap(-1, {50 * MEGABYTE})
shared.write(b"x" * {50 * MEGABYTE})
for _ in range(2):
    if os.fork() == 0:
        sum(shared[::4096])
        os.write(1, b"\\n")
        time.sleep(600)
time.sleep(0.3)
{SLEEPER}
"""
LEAVES_AN_ORPHAN = f"""
import os, subprocess, sys
if os.fork() == 0:
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    os._exit(0)
os.wait()
{SLEEPER}
"""


def ram(root: int) -> int:
    size = tree_ram(root)
    assert size is not None
    return size


def test_ram_of_children_counts() -> None:
    with script(SLEEPER) as alone, script(PARENT_OF_A_CHILD_THAT_TAKES_50) as parent:
        difference = ram(parent.pid) - ram(alone.pid)
    assert 50 * MEGABYTE < difference < 80 * MEGABYTE


def test_shared_memory_counts_once() -> None:
    with script(SLEEPER) as alone, script(SHARES_50_WITH_TWO_CHILDREN) as parent:
        wait_until(lambda: len(members(parent.pid)) == 3, "two children")
        difference = ram(parent.pid) - ram(alone.pid)
    assert 45 * MEGABYTE < difference < 90 * MEGABYTE


def test_library_files_count_in_full_whoever_else_maps_them() -> None:
    """A share in proportion would fall with every further process that runs the same interpreter."""
    with script(SLEEPER) as one:
        before = ram(one.pid)
        with script(SLEEPER), script(SLEEPER), script(SLEEPER):
            assert abs(ram(one.pid) - before) < MEGABYTE


def test_a_child_whose_parent_ended_is_still_a_member() -> None:
    with script(LEAVES_AN_ORPHAN) as leader:
        wait_until(lambda: len(members(leader.pid)) == 2, "the orphan is found")


def test_processor_time_of_children_counts() -> None:
    spinner = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'while True: pass']); {SLEEPER}"
    with script(spinner) as parent:
        wait_until(lambda: cpu_seconds(parent.pid) > 0.3, "the child's time")


def test_nothing_of_a_process_that_is_gone() -> None:
    with script(SLEEPER) as process:
        pid = process.pid
    assert members(pid) == []
    assert tree_ram(pid) is None


def test_the_peak_stays() -> None:
    peak = PeakRam(os.getpid())
    peak.sample()
    assert peak.peak is not None
    before = peak.peak
    held = bytearray(b"x") * (60 * MEGABYTE)
    peak.sample()
    del held
    peak.sample()
    assert peak.peak >= before + 50 * MEGABYTE
