"""An attack for so many seconds: its cases run in a process that may crash or hang, and is then replaced."""

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
ATTACKS = tuple(sorted(path.stem for path in (Path(__file__).parent / "attacks").glob("[a-z]*.py")))
HANG_S = 180.0
MOST_FAILURES = 10
"""After so many an attack ends."""
START_S = 120.0
"""For imports and what all cases begin with."""


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
    progress, output = folder / "progress.jsonl", folder / "output.txt"
    progress.touch()
    arguments = [result.name, str(seed), str(result.cases), str(seconds), str(folder)]
    first = result.cases
    with output.open("wb") as file:
        command = [sys.executable, "-m", "tests.fuzz.worker", *arguments]
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
        reason = _watched(process, progress, hang_s)
    lines = [json.loads(line) for line in progress.read_text().splitlines()]
    result.cases = first + len([line for line in lines if "case" in line])
    for line in lines:
        if "failure" in line:
            result.failures.append(_failure(result.name, seed, line["of"], line["failure"]))
    if reason:
        shown = f"{reason}\n{output.read_text(errors='replace')[-4000:]}"
        result.failures.append(_failure(result.name, seed, max(first, result.cases - 1), shown))
        result.cases = max(result.cases, first + 1)


def _watched(process: "subprocess.Popen[bytes]", progress: Path, hang_s: float) -> str:
    """Wait for a worker to end; why it ended badly, or nothing."""
    size, changed, patience = 0, time.monotonic(), START_S
    while process.poll() is None:
        time.sleep(0.05)
        now = progress.stat().st_size
        if now != size:
            size, changed, patience = now, time.monotonic(), hang_s
        elif time.monotonic() - changed > patience:
            process.kill()
            process.wait()
            return f"no progress for {patience:.0f} s"
    return "" if process.returncode == 0 else f"the process ended with code {process.returncode}"


def _failure(name: str, seed: int, case: int, text: str) -> str:
    return f"FAILED {name}, case {case}\n{text}\nrepeat: make fuzz ATTACK='{name} --seed {seed} --case {case}'\n"
