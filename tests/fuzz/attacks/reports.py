"""Run directories that were damaged or made up: `report`, `compare` and `doctor` do without, or say why not."""

import json
import os
import random
from pathlib import Path
from typing import Any

from tests.fuzz.commands import surefoot
from tests.fuzz.values import ANY, mutated
from tests.inspection.report.written_runs import records, write_run

ESCAPE = "\x1b]0;x\x07\x1b[1A\x1b[31m\x9b2J"


def prepare(folder: Path) -> dict[str, bytes]:
    """The files of a plain run."""
    write_run(folder / "run", records(40))
    return {path.name: path.read_bytes() for path in (folder / "run").iterdir()}


def case(pick: random.Random, material: dict[str, bytes], folder: Path) -> None:
    """Two runs, of which one is damaged or has odd values."""
    for name in ("one", "other"):
        (folder / name).mkdir()
        for file, data in material.items():
            (folder / name / file).write_bytes(data)
    metrics = folder / "one" / "metrics.jsonl"
    if pick.random() < 0.4:
        damaged = pick.choice([metrics, metrics, folder / "one" / "config.yaml"])
        damaged.write_bytes(mutated(pick, damaged.read_bytes()))
    else:
        lines = [json.loads(line) for line in metrics.read_text().splitlines()]
        metrics.write_text("".join(_odd(pick, line) + "\n" for line in lines))
    with (folder / "one" / "log.txt").open("a") as log:
        log.write(f"2026-01-01 12:00:00,000 INFO ended by an error: {ESCAPE}; {ESCAPE}\n")
    if pick.random() < 0.3:
        name = pick.choice(["lock", "log.txt", "evaluations.jsonl", "metrics.jsonl", "config.yaml"])
        (folder / "one" / name).unlink(missing_ok=True)
        os.mkfifo(folder / "one" / name)
    one = folder / pick.choice(["one", ESCAPE, os.fsdecode(b"\xe4\x9b")])
    (folder / "one").rename(one)
    surefoot("report", one, *pick.choice([[], ["other"]]), "--output", "page.html")
    surefoot("compare", one, "other", "--output", "compared.html")
    surefoot("doctor", one)


def _odd(pick: random.Random, line: dict[str, Any]) -> str:
    """A line with a strange value, a strange line, or mostly the line itself."""
    chance = pick.random()
    if chance < 0.8:
        return json.dumps(line)
    if chance < 0.95:
        odd = pick.choice([value for value in ANY if not isinstance(value, bytes)])
        return json.dumps({**line, pick.choice([*line, "odd", "", ESCAPE, f"warn/{ESCAPE}", f"env/{ESCAPE}"]): odd})
    return pick.choice(
        ["", "{", "[]", "null", "[" * 5000, "{" * 5000, '{"step": 1e999}', '{"step":' + "9" * 5000 + "}", "\x00"]
    )
