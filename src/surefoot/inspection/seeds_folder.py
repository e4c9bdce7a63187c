"""A folder with one run per seed, as `surefoot train --seeds` leaves it."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from surefoot.errors import RunDirectoryError

SETTINGS = "seeds.yaml"
"""The settings that the runs share, and the list of their seeds."""
_NAME = re.compile(r"seed_(\d+)")


def directory_of(folder: Path, seed: int) -> Path:
    """The run directory of a seed."""
    return folder / f"seed_{seed}"


def is_seeds_folder(path: Path) -> bool:
    """Whether a folder holds runs of several seeds."""
    return os.path.isfile(path / SETTINGS)


def runs_in(path: Path) -> list[Path]:
    """The run directories with records in a folder of seeds, by seed; any other path is returned as it is."""
    if not is_seeds_folder(path):
        return [path]
    return [one for one in seed_directories(path) if _has_records(one / "metrics.jsonl")]


def seed_directories(path: Path) -> list[Path]:
    """The directories of seeds in a folder, by seed."""
    inside = path.iterdir() if path.is_dir() else ()
    found = {int(named[1]): one for one in inside if (named := _NAME.fullmatch(one.name))}
    return [found[seed] for seed in sorted(found)]


def _has_records(metrics: Path) -> bool:
    return os.path.isfile(metrics) and metrics.stat().st_size > 0


def runs_of(paths: Sequence[Path]) -> list[Path]:
    """Run directories: those given, and those in folders of seeds."""
    found: list[Path] = []
    for path in paths:
        inside = runs_in(path)
        if not inside:
            raise RunDirectoryError(f"no run in {path} has records yet; continue it with 'surefoot resume {path}'")
        found += inside
    return found


def refuse_seeds_folder(path: Path) -> None:
    """For commands about one run."""
    if is_seeds_folder(path):
        example = next(iter(runs_in(path)), directory_of(path, 1))
        raise RunDirectoryError(f"{path} holds several seeds; pass one of them, such as {example}")
