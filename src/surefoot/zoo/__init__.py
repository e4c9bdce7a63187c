"""The zoo: a trained policy for every preset, and what is known about each; written by `make zoo`.

`zoo:NAME` names the policy of the preset NAME wherever a model is expected.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from surefoot.errors import ZooError
from surefoot.settings.registry import nearest

PREFIX = "zoo:"
INDEX = "zoo.json"
SUFFIX = ".safetensors"


@dataclass(frozen=True)
class ZooEntry:
    """A policy of the zoo: the best of several seeds, evaluated again on episodes that did not choose it."""

    preset: str
    env: str
    steps: int
    seeds: Mapping[int, float]
    """Mean reward of each seed, on the episodes that chose the best."""
    seed: int
    """The seed of this policy."""
    seconds: float
    """Median training time of the seeds, on one thread."""
    mean_reward: float
    std_reward: float
    interval: tuple[float, float]
    """95% bootstrap interval of the mean reward."""
    episodes: int
    evaluation_seed: int
    required: str = ""
    published: str = ""

    @property
    def train(self) -> str:
        """The command that trains this policy."""
        return f"surefoot train {self.preset} --seed {self.seed}"

    @property
    def evaluate(self) -> str:
        """The command that reproduces the score."""
        seed = f" --seed {self.evaluation_seed}" if self.evaluation_seed else ""
        return f"surefoot evaluate {PREFIX}{self.preset} --episodes {self.episodes}{seed}"

    @property
    def file(self) -> Path:
        """The checkpoint."""
        return folder() / f"{self.preset}{SUFFIX}"

    @property
    def mean_of_seeds(self) -> float:
        """Mean of the seeds' mean rewards."""
        return fmean(self.seeds.values())

    @property
    def std_of_seeds(self) -> float | None:
        """Standard deviation of the seeds' mean rewards, if there are several."""
        return stdev(self.seeds.values()) if len(self.seeds) > 1 else None


def folder() -> Path:
    """Where the policies are."""
    return Path(str(resources.files(__name__).joinpath(INDEX))).parent


@cache
def _index() -> dict[str, Any]:
    index: dict[str, Any] = json.loads((folder() / INDEX).read_text(encoding="utf-8"))
    return index


def zoo_entries() -> dict[str, ZooEntry]:
    """All policies by the name of their preset, sorted."""
    return {name: entry_of(name, values) for name, values in sorted(_index()["policies"].items())}


def zoo_missing() -> dict[str, str]:
    """Presets without a policy, and why."""
    return dict(sorted(_index()["missing"].items()))


def entry_of(name: str, values: Mapping[str, Any]) -> ZooEntry:
    """An entry from its values in the index."""
    seeds = {int(seed): float(score) for seed, score in values["seeds"].items()}
    low, high = values["interval"]
    rest = {key: value for key, value in values.items() if key not in ("seeds", "interval")}
    return ZooEntry(preset=name, seeds=seeds, interval=(low, high), **rest)


def rounded(value: float) -> str:
    """A score with about three digits, for tables."""
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f}" if abs(value) >= 0.1 or value == 0 else f"{value:.2g}"


def zoo_entry(name: str) -> ZooEntry:
    """One policy; `zoo:` before the name is optional."""
    bare, entries, missing = name.removeprefix(PREFIX), zoo_entries(), zoo_missing()
    if bare in entries:
        return entries[bare]
    if bare in missing:
        raise ZooError(f"the zoo has no policy for {bare} yet ({missing[bare]}); train it: surefoot train {bare}")
    raise ZooError(f"the zoo has no policy '{bare}'{nearest(bare, [*entries, *missing])} ('surefoot zoo' lists all)")
