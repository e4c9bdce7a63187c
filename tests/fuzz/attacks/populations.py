"""Damaged populations: `resume` and `report` go on or say why not, and no member starts again from scratch."""

import json
import random
import shutil
from pathlib import Path
from typing import Any

import yaml

from tests.fuzz.commands import surefoot
from tests.fuzz.values import ANY, mutated
from tests.population.populations import small_raw


def prepare(folder: Path) -> Path:
    """A population that has finished two of its rounds."""
    (folder / "small.yaml").write_text(
        yaml.safe_dump(small_raw(members=2) | {"preset": "none", "train": {"steps": 128}})
    )
    assert surefoot("population", folder / "small.yaml", "--run-dir", folder / "population") == 0
    return folder / "population"


def case(pick: random.Random, material: Path, folder: Path) -> None:
    """A few things go wrong at once; then the population is resumed."""
    population = folder / "population"
    shutil.copytree(material, population)
    treasure = [path.read_bytes() for path in sorted(population.glob("members/*/checkpoints/*"))]
    best = (population / "best.safetensors").read_bytes()
    is_lost = [_damage(pick, population) for _ in range(pick.choice([1, 1, 2]))]
    surefoot("population", "resume", population)
    surefoot("report", population, "--output", "page.html")
    if all(is_lost):  # other values may be valid ones, and lead elsewhere
        kept = [path.read_bytes() for path in sorted(population.glob("members/*/checkpoints/*"))]
        assert kept == treasure, "members have started again"
        assert (population / "best.safetensors").read_bytes() == best


def _damage(pick: random.Random, population: Path) -> bool:
    """Of the log and the outcomes; run directories have an attack of their own. Whether a file was only lost."""
    outcomes = sorted(population.glob("members/*/rounds/*.json"))
    target = pick.choice([population / "population.jsonl", population / "population.jsonl", *outcomes])
    chance = pick.random()
    if chance < 0.3 or not target.is_file():
        target.unlink(missing_ok=True)
        if pick.random() < 0.5:
            target.write_bytes(b"")
        return True
    if chance < 0.6:
        target.write_bytes(mutated(pick, target.read_bytes()))
    else:
        lines = target.read_text(errors="replace").splitlines()
        at = pick.randrange(max(1, len(lines)))
        lines[at : at + 1] = [_odd(pick, lines[at])] if lines else ["[]"]
        target.write_text("\n".join(lines) + "\n")
    return False


def _odd(pick: random.Random, line: str) -> str:
    try:
        entry: Any = json.loads(line)
    except ValueError:
        entry = {}
    odd = pick.choice([value for value in ANY if not isinstance(value, bytes)])
    if isinstance(entry, dict) and entry and pick.random() < 0.8:
        name = pick.choice(list(entry))
        nested = isinstance(entry[name], dict) and entry[name] and pick.random() < 0.5
        entry = entry | {name: entry[name] | {pick.choice(list(entry[name])): odd} if nested else odd}
        return json.dumps(entry)
    return pick.choice(["", "{", "[]", "null", "[" * 5000, json.dumps(odd)])
