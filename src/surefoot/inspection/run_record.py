"""What a run directory tells about its run: the config and the metric records."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from surefoot.core.errors import RunDirectoryError

Record = dict[str, float]
Series = list[tuple[int, float]]


@dataclass(frozen=True)
class RunRecord:
    """A run as it was written down; records are in the order of their steps, one a step."""

    path: Path
    config: dict[str, Any]
    records: list[Record]

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.path.resolve().name

    def series(self, metric: str) -> Series:
        """(step, value) wherever the metric was recorded."""
        return [(int(record["step"]), record[metric]) for record in self.records if metric in record]


def read_run(path: Path) -> RunRecord:
    """Read a run directory; it may belong to a run that is still going on, or that was killed."""
    config_file, metrics_file = path / "config.yaml", path / "metrics.jsonl"
    if not config_file.is_file():
        raise RunDirectoryError(f"{path} holds no run (it has no config.yaml); give the folder that 'train' printed")
    if not metrics_file.is_file():
        raise RunDirectoryError(f"{path} has no metrics.jsonl yet; wait for the first iteration to end")
    try:
        config = yaml.safe_load(config_file.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise RunDirectoryError(f"{config_file} cannot be read: {error}") from error
    return RunRecord(path, config if isinstance(config, dict) else {}, _read_records(metrics_file))


def _read_records(path: Path) -> list[Record]:
    """A killed run may leave half a line, and a resumed one repeats steps: what was written last counts."""
    by_step: dict[int, Record] = {}
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            record = json.loads(line)
            step = int(record["step"])
        except (ValueError, KeyError, TypeError):
            continue
        while by_step and next(reversed(by_step)) >= step:
            by_step.popitem()
        by_step[step] = record
    if not by_step:
        raise RunDirectoryError(f"{path} holds no record yet; wait for the first iteration to end")
    return list(by_step.values())
