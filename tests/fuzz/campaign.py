"""An attack for so many seconds: its cases run in a process that may crash or hang, and is then replaced."""

import json
import signal
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.cli.processes import Finished, Process
from tests.fuzz.worker import MOST_FAILURES, work

ATTACKS = tuple(sorted(path.stem for path in (Path(__file__).parent / "attacks").glob("[a-z]*.py")))
HANG_S = 180.0
START_S = 120.0
"""For what all cases begin with."""


@dataclass
class Campaign:
    """What came of an attack; a failure tells the error and how to repeat the case."""

    name: str
    cases: int = 0
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)


def attack(
    name: str, seed: int, seconds: float, hang_s: float = HANG_S, most_failures: int = MOST_FAILURES
) -> Campaign:
    """Run cases 0, 1, 2, ... until the time is over; at least one. A case that takes `hang_s` counts as failed."""
    result, began = Campaign(name), time.monotonic()
    while result.cases == 0 or (time.monotonic() - began < seconds and len(result.failures) < most_failures):
        left = max(0.1, seconds - (time.monotonic() - began))
        with tempfile.TemporaryDirectory(prefix="surefoot-fuzz-") as folder:
            _attack_once(result, seed, left, Path(folder), hang_s)
    result.seconds = time.monotonic() - began
    return result


def _attack_once(result: Campaign, seed: int, seconds: float, folder: Path, hang_s: float) -> None:
    """Until the time is over or the process ends, which is a failure of the case that it was at."""
    progress, first = folder / "progress.jsonl", result.cases
    progress.touch()
    ended, reason = _watched(Process(work, result.name, seed, first, seconds, folder), progress, hang_s)
    lines = [json.loads(line) for line in progress.read_text().splitlines()]
    result.cases = first + len([line for line in lines if "case" in line])
    for line in lines:
        if "failure" in line:
            result.failures.append(_failure(result.name, seed, line["of"], line["failure"]))
    if reason:
        shown = f"{reason}\n{(ended.out + ended.err)[-4000:]}"
        result.failures.append(_failure(result.name, seed, max(first, result.cases - 1), shown))
        result.cases = max(result.cases, first + 1)


def _watched(process: Process, progress: Path, hang_s: float) -> tuple[Finished, str]:
    """Wait for a worker to end; why it ended badly, or nothing."""
    size, changed, patience = 0, time.monotonic(), START_S
    while process.is_alive():
        time.sleep(0.02)
        now = progress.stat().st_size
        if now != size:
            size, changed, patience = now, time.monotonic(), hang_s
        elif time.monotonic() - changed > patience:
            process.send(signal.SIGKILL)
            return process.wait(), f"no progress for {patience:.0f} s"
    ended = process.wait()
    return ended, f"the process ended with code {ended.code}" if ended.code else ""


def _failure(name: str, seed: int, case: int, text: str) -> str:
    return f"FAILED {name}, case {case}\n{text}\nrepeat: make fuzz ATTACK='{name} --seed {seed} --case {case}'\n"
