import numpy as np

from surefoot.telemetry import names
from surefoot.telemetry.memory import memory_metrics


def test_memory_that_is_taken_shows() -> None:
    before = memory_metrics()
    taken = np.ones(25 * 2**20)  # 200 MB
    after = memory_metrics()
    assert 100 < after[names.MEMORY] - before[names.MEMORY] < 300
    assert after[names.MEMORY] * 2**20 > taken.nbytes
    assert 0 < after[names.MEMORY_AVAILABLE] < 1
