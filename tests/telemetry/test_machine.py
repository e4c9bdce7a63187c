import json
import os
import subprocess
import sys
import time

from surefoot.machine.ram import ram_limits
from surefoot.telemetry import names
from surefoot.telemetry.machine import CpuWait, Ram

TAKES_200_MB = """
import json
import numpy as np
from surefoot.telemetry.machine import Ram
before = Ram().metrics()
taken = np.ones(25 * 2**20)
print(json.dumps([before, Ram().metrics()]))
"""


def test_memory_that_is_taken_shows() -> None:
    """In a process of its own: one that has worked before may have as much to give."""
    told = subprocess.run([sys.executable, "-c", TAKES_200_MB], capture_output=True, text=True, check=True).stdout
    before, after = json.loads(told)
    assert 100 < after[names.RAM] - before[names.RAM] < 300
    assert after[names.RAM] > 200
    assert 0 < after[names.RAM_AVAILABLE] < 1


def test_memory_is_read_once_a_second(monkeypatch) -> None:
    now, reads = [100.0], []
    monkeypatch.setattr("surefoot.telemetry.machine.time.monotonic", lambda: now[0])
    monkeypatch.setattr("surefoot.telemetry.machine.ram_limits", lambda: reads.append(1) or ram_limits())
    ram = Ram()
    first = ram.metrics()
    now[0] += 0.9
    assert ram.metrics() == first
    assert len(reads) == 1
    now[0] += 0.2
    assert ram.metrics().keys() == first.keys()
    assert len(reads) == 2


def wait_while_working(seconds: float) -> float:
    wait = CpuWait()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
    return wait.metrics()[names.CPU_WAIT]


def test_waiting_for_a_cpu_shows_and_sleeping_is_none() -> None:
    wait = CpuWait()
    time.sleep(0.2)
    assert wait.metrics()[names.CPU_WAIT] < 0.2
    count = 4 * len(os.sched_getaffinity(0))
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        assert wait_while_working(1.0) > 0.4
    finally:
        for other in others:
            other.kill()
            other.wait()
