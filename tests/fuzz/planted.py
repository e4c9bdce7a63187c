"""An attack that finds something: every third case raises, ends the process or hangs."""

import os
import random
import time
from pathlib import Path
from typing import Any


def prepare(folder: Path) -> Path:
    """Counts the cases, also of earlier processes."""
    return Path(os.environ["SUREFOOT_PLANTED"])


def case(pick: random.Random, material: Path, folder: Path) -> None:
    """What happens depends on how many cases there were before."""
    number = int(material.read_text())
    material.write_text(str(number + 1))
    actions: dict[int, Any] = {2: lambda: 1 / 0, 5: os.abort, 8: lambda: time.sleep(3600)}
    actions.get(number, lambda: None)()
