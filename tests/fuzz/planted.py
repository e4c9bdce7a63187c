"""An attack that finds something: every third of the first nine cases raises, ends the process or hangs."""

import os
import random
import time
from pathlib import Path
from typing import Any

SEED = 3
_NUMBERS = {random.Random(f"{SEED}/{number}").random(): number for number in range(9)}


def prepare(folder: Path) -> None:
    """Nothing is needed."""


def case(pick: random.Random, material: None, folder: Path) -> None:
    """What happens depends on the number of the case."""
    actions: dict[int, Any] = {2: lambda: 1 / 0, 5: os.abort, 8: lambda: time.sleep(3600)}
    actions.get(_NUMBERS[pick.random()], lambda: None)()
