"""Which seeds are trained with which settings, and the file that says so in their folder."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from surefoot.errors import ConfigError, RunDirectoryError
from surefoot.inspection.seeds_folder import SETTINGS, directory_of, is_seeds_folder, seed_directories
from surefoot.machine.cores import available_cores
from surefoot.output.quoted import quoted
from surefoot.presets import NO_PRESET
from surefoot.saved_run import resumed_config
from surefoot.settings.config import Config
from surefoot.settings.layers import Raw, build_config, read_yaml, rebuilt
from surefoot.storage.files import read_regular
from surefoot.storage.run_folder import SEEDS, refuse_other_kind
from surefoot.training.checkpoint import write_atomically
from surefoot.training.run_directory import RunDirectory

MOST_SEEDS = 1000
_RESULTS = "results.json"
_SEEDS = re.compile(r"(\d+)(?:-(\d+))?")


def parse_seeds(text: str) -> tuple[int, ...]:
    """`1,2,3`, `1-5`, or both: `1-3,7`; every seed once, in this order."""
    found: dict[int, None] = {}
    for word in text.replace(" ", "").split(","):
        match = _SEEDS.fullmatch(word)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if first > last or last >= 2**63 or last - first >= MOST_SEEDS:
            raise ConfigError(
                f"--seeds: pass numbers or ranges such as 1,2,3 or 1-5, at most {MOST_SEEDS} (got {quoted(text)})"
            )
        found |= dict.fromkeys(range(first, last + 1))
    if len(found) > MOST_SEEDS:
        raise ConfigError(f"--seeds: at most {MOST_SEEDS} seeds (got {len(found)})")
    return tuple(found)


@dataclass(frozen=True)
class SeedsPlan:
    """The seeds in a folder, and the config that their runs share."""

    folder: Path
    config: Config
    seeds: tuple[int, ...]
    command: tuple[str, ...] = field(default=(), compare=False)
    """What the user typed, for the logs of the runs."""
    begun: frozenset[int] = field(default=frozenset(), compare=False)
    """Seeds whose runs had begun: they are never started again."""

    @property
    def slots(self) -> int:
        """Runs at a time: as many as there are cores for."""
        return max(1, min(len(self.seeds), available_cores() // self.config.train.threads))

    def config_of(self, seed: int) -> Config:
        """The config of one run."""
        return rebuilt(self.config, {"train.seed": seed})

    def directory_of(self, seed: int) -> Path:
        """The run directory of a seed."""
        return directory_of(self.folder, seed)

    def refuse_lost(self) -> None:
        """Refuse to start a seed again whose run was deleted."""
        for seed in self.seeds:
            if seed in {*self.begun, *self._kept()} and not RunDirectory(self.directory_of(seed)).has_begun:
                raise RunDirectoryError(
                    f"the run of seed {seed} had begun, but {self.directory_of(seed)} has none; restore it, choose"
                    f" another --run-dir, or, to train it from the start, remove it from 'begun' in"
                    f" {self.folder / SETTINGS} and from {_RESULTS}"
                )

    def write(self, begun: Iterable[int] = ()) -> None:
        """Write the settings and which runs have begun, so that the folder can be continued."""
        content = {"preset": NO_PRESET, **self.config.model_dump(mode="json"), "seeds": list(self.seeds)}
        content |= {"begun": sorted(begun)}
        self._write(self.folder / SETTINGS, yaml.safe_dump(content, sort_keys=False))

    def results(self) -> dict[int, dict[str, Any]]:
        """What finished runs returned, by seed; a run counts as finished for the number of steps it was asked for."""
        return {seed: one for seed, one in self._kept().items() if self._has_finished(seed, one)}

    def _kept(self) -> dict[int, dict[str, Any]]:
        try:
            found = json.loads(read_regular(self.folder / _RESULTS))
            return {int(seed): dict(result) for seed, result in found.items()}
        except (OSError, ValueError, TypeError, AttributeError, RecursionError):
            return {}  # every seed is asked again: one that has finished says so at once

    def _has_finished(self, seed: int, result: dict[str, Any]) -> bool:
        is_sound = type(result.get("step")) is int and isinstance(result.get("reason"), str)
        return is_sound and seed in self.seeds and result.get("wanted") == self.config.train.steps

    def keep(self, results: dict[int, dict[str, Any]]) -> None:
        """Write down what finished runs returned."""
        self._write(self.folder / _RESULTS, json.dumps(results, indent=1))

    def _write(self, file: Path, text: str) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomically(file, text.encode())
        except OSError as error:
            raise RunDirectoryError(
                f"cannot write {file} ({error.strerror}); remove the cause and repeat the command, or choose another"
                " directory with --run-dir"
            ) from error


def new_plan(folder: Path, config: Config, seeds: tuple[int, ...], command: tuple[str, ...] = ()) -> SeedsPlan:
    """The plan of a folder: a new one, or the seeds that it has with further ones."""
    refuse_other_kind(folder, SEEDS)
    if not is_seeds_folder(folder):
        if runs := seed_directories(folder):
            raise RunDirectoryError(
                f"{folder} has {runs[0].name}, but no {SETTINGS}; restore it, or choose another --run-dir"
            )
        return SeedsPlan(folder, _with_threads(config, len(seeds)), seeds, command)
    saved = read_plan(folder)
    problems = _differences(saved.config, config)
    if problems:
        raise RunDirectoryError(
            f"{folder} holds seeds that were trained with another {', '.join(problems)}; use the same settings,"
            f" continue them with 'surefoot resume {folder}', or choose another --run-dir"
        )
    return SeedsPlan(folder, saved.config, tuple(dict.fromkeys([*saved.seeds, *seeds])), command, saved.begun)


def read_plan(folder: Path, changes: Raw | None = None, command: tuple[str, ...] = ()) -> SeedsPlan:
    """The plan that a folder says, with allowed changes of settings."""
    raw = read_yaml(folder / SETTINGS)
    seeds, begun = raw.pop("seeds", None), raw.pop("begun", [])
    settings = {key: value for key, value in raw.items() if key != "preset"}
    for name, numbers in (("seeds", seeds), ("begun", begun)):
        if not (isinstance(numbers, list) and all(type(seed) is int and seed >= 0 for seed in numbers)) or not seeds:
            raise ConfigError(f"{folder / SETTINGS}: {name}: must be a list of numbers")
    config = resumed_config(build_config(settings), changes or {})
    return SeedsPlan(folder, config, tuple(seeds), command, frozenset(begun))


def _with_threads(config: Config, count: int) -> Config:
    """The config with a number of threads: every run has its share of the cores."""
    cores = available_cores()
    threads = config.train.threads or max(1, cores // min(count, cores))
    own = {"train.threads": threads, "rollout.workers": config.rollout.workers or threads}
    return rebuilt(config, own)


def _differences(saved: Config, wanted: Config) -> list[str]:
    old, new = saved.decisive(), wanted.decisive()
    return [key for key in new | old if key != "train.seed" and old.get(key) != new.get(key)]
