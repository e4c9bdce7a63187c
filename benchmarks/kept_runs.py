"""Runs in a results file, so that a long comparison can be made in parts: what is already there is not run again."""

import dataclasses
import json
from pathlib import Path
from typing import Any

from surefoot.errors import ConfigError

Run = dict[str, Any]


class KeptRuns:
    """The runs of one task, a dataclass. A file with runs of another definition of it is refused, not overwritten."""

    def __init__(self, file: Path, task: Any, again: bool = False) -> None:
        self._file, self.task = file, json.loads(json.dumps(_given(task)))
        self.runs: list[Run] = []
        if file.exists() and not again:
            saved = json.loads(file.read_text(encoding="utf-8"))
            if saved["task"] != self.task:
                problem = f"{file} has runs of {saved['task']}, not of {self.task}; start over with --again"
                raise ConfigError([f"{problem}, or write to another folder with --output"])
            self.runs = saved["runs"]

    def has(self, **labels: Any) -> bool:
        """Whether a run with these entries is there."""
        return any(all(run.get(key) == value for key, value in labels.items()) for run in self.runs)

    def add(self, run: Run) -> None:
        """Keep a finished run at once; an interruption loses at most the run that is going on."""
        self.runs.append(run)
        self.write({})

    def write(self, verdict: dict[str, Any]) -> None:
        """Write the file, with what the runs say; first beside it, so that it is never half written."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        new = self._file.with_suffix(".new")
        text = json.dumps({**verdict, "task": self.task, "runs": self.runs}, indent=1)
        new.write_text(text + "\n", encoding="utf-8")
        new.replace(self._file)


def _given(task: Any) -> dict[str, Any]:
    """The entries that differ from their defaults, so that a new field does not change older files."""
    entries = {field.name: (getattr(task, field.name), field.default) for field in dataclasses.fields(task)}
    return {name: value for name, (value, default) in entries.items() if value != default}
