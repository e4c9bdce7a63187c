"""The section `sweep` of a sweep's config, and its checks against the other sections."""

import itertools
import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from surefoot.errors import ConfigError
from surefoot.presets import configured
from surefoot.settings.config import Config, Count, Number, Positive
from surefoot.settings.layers import Raw, build_section, rebuilt
from surefoot.settings.parts import Section
from surefoot.settings.ranges import Range

NAME = "sweep"
_TUNABLES = "tunables"
TRIALS = 20
"""Default number of trials of samplers that could try more and more values."""
_LATEST_SHARE = 1 - 2**-30
_SET_BY_SWEEP = {
    "train.seed": "sweep.seeds",
    "train.best_metric": "sweep.objective",
    "train.eval_episodes": "sweep.episodes",
}


class TimeTo(Section):
    """The objective is how soon an evaluation reaches a score."""

    score: float = Field(description="the score to reach")
    unit: Literal["steps", "seconds"] = Field(
        "steps", description="steps of the environment, which are repeatable, or seconds of training"
    )


class Objective(Section):
    """What makes a trial good: a high score in the last evaluation, or reaching a score early."""

    metric: str = Field(
        "mean_reward", description="score of an evaluation, as in train.best_metric: mean_reward, cvar, -metric ..."
    )
    time_to: TimeTo | None = Field(None, description="minimize the time to a score, instead of maximizing the last")


def _named_metric(value: Any) -> Any:
    """`objective: cvar` is short for `objective: {metric: cvar}`."""
    return {"metric": value} if isinstance(value, str) else value


class SweepConfig(Section):
    """What a sweep tries, and how it is judged."""

    tunables: dict[str, Range] = Field(min_length=1, description="ranges of settings by name, such as optimizer.lr")
    trials: Number = Field(
        0, le=1_000_000, description=f"number of trials; 0 means {TRIALS}, or the whole grid with the sampler grid"
    )
    sampler: Literal["tpe", "random", "grid"] = Field("tpe", description="how values are chosen: tpe, random or grid")
    pruner: Literal["none", "median", "halving"] = Field(
        "none", description="stops bad trials early, by their evaluations (train.eval_every): none, median or halving"
    )
    objective: Annotated[Objective, BeforeValidator(_named_metric)] = Field(
        Objective(), description="a metric of the last evaluation, or {time_to: {score: ...}}"
    )
    episodes: Count = Field(20, description="episodes per evaluation")
    seeds: Count = Field(1, le=1000, description="runs per trial, with seeds from train.seed on; their mean counts")
    finalists: Number = Field(
        0,
        le=1000,
        description="best trials that are trained again with other seeds, which choose the best; 0 means none",
    )
    final_seeds: Count = Field(5, le=1000, description="runs per finalist")
    baseline: bool = Field(True, description="the first trial has the config's own values, as far as ranges hold them")
    seed: Number = Field(0, description="seed of the sampler")
    parallel: Number = Field(0, le=1024, description="runs at the same time; 0 means one per core")
    backend: Literal["local", "ray"] = Field("local", description="where runs are trained: this machine or Ray nodes")
    address: str | None = Field(None, description="address of a Ray cluster; without it, a local Ray is started")
    patience_s: Positive = Field(1800.0, description="seconds without an iteration before a run is started again")

    @property
    def num_trials(self) -> int:
        """Number of trials."""
        if self.sampler != "grid":
            return self.trials or TRIALS
        size = math.prod(len(one.choices) for one in self.tunables.values())
        return min(self.trials, size) or size

    @property
    def minimizes(self) -> bool:
        """Whether lower values of the objective are better."""
        return self.objective.time_to is not None

    def grid_point(self, index: int) -> dict[str, Any]:
        """The values of a point of the grid; the last setting varies fastest."""
        points = itertools.product(*(one.choices for one in self.tunables.values()))
        return dict(zip(self.tunables, next(itertools.islice(points, index, None)), strict=True))


FREE_TO_CHANGE = ("trials", "finalists", "final_seeds", "parallel", "backend", "address", "patience_s")
"""Settings of the section that may differ when a sweep is continued: they do not change what a trial means."""


def read_settings(raw: Mapping[str, Any], changes: Mapping[str, Any]) -> tuple[Config, SweepConfig]:
    """The base config and the section `sweep`, from a file and the command line, over the preset of the env."""
    own = _own_changes({key: value for key, value in changes.items() if key.partition(".")[0] == NAME})
    rest = [{key: value for key, value in layer.items() if key.partition(".")[0] != NAME} for layer in (raw, changes)]
    section = raw.get(NAME)
    if section is not None and not isinstance(section, Mapping):
        raise ConfigError(f"{NAME}: must be a section with keys such as '{_TUNABLES}:'")
    if not section and not own:
        raise ConfigError(f"{NAME}: the config has no section '{NAME}:'; it needs at least {NAME}.{_TUNABLES}")
    config = configured(None, *rest).config
    sweep = build_section(SweepConfig, _merged(section or {}, own), NAME)
    if problems := _problems(config, sweep):
        raise ConfigError(problems)
    return config, sweep


def _own_changes(changes: Mapping[str, Any]) -> Raw:
    """`sweep.a.b: value` as nested mappings; names of tunables keep their dots."""
    nested: Raw = {}
    for name, value in changes.items():
        _, *path = name.split(".")
        if path[:1] == [_TUNABLES] and path[1:]:
            last = [path.pop()] if path[-1] in Range.model_fields else []
            path = [_TUNABLES, ".".join(path[1:]), *last]
        for key in reversed(path):
            value = {key: value}
        nested = _merged(nested, value)
    return nested


def _merged(before: Mapping[str, Any], after: Any) -> Raw:
    merged = dict(before)
    for key, value in after.items():
        earlier = merged.get(key)
        both = isinstance(earlier, Mapping) and isinstance(value, Mapping)
        merged[key] = _merged(earlier, value) if both else value  # type: ignore[arg-type]
    return merged


def _problems(config: Config, sweep: SweepConfig) -> list[str]:
    problems = [text for key, values in sweep.tunables.items() for text in _of_tunable(config, sweep, key, values)]
    needs = "sweep.objective.time_to" if sweep.minimizes else "sweep.pruner" if sweep.pruner != "none" else ""
    if needs and not 0 < config.train.eval_every < config.train.steps:
        problems.append(
            f"train.eval_every: {needs} needs evaluations during a run; set it between 1 and train.steps (got"
            f" {config.train.eval_every})"
        )
    if sweep.address is not None and sweep.backend != "ray":
        problems.append("sweep.address: only the backend ray has an address; set sweep.backend to ray")
    return problems


def _of_tunable(config: Config, sweep: SweepConfig, key: str, values: Range) -> list[str]:
    """Every choice, or both ends and a value between them, must make a valid config.

    What depends on another tunable too is found when a trial has both.
    """
    where = f"{NAME}.{_TUNABLES}.{key}"
    if key in _SET_BY_SWEEP:
        return [f"{where}: the sweep sets {key} by {_SET_BY_SWEEP[key]}; remove it from the tunables"]
    if sweep.sampler == "grid" and not values.choices:
        return [f"{where}: the sampler grid needs choices, not a range; list them or set sweep.sampler"]
    others = [other for other in sweep.tunables if other != key]
    found: dict[str, None] = {}
    for value in values.choices or [values.at(share) for share in (0.0, 0.37, _LATEST_SHARE)]:
        try:
            rebuilt(config, {key: value})
        except ConfigError as error:
            texts = (text for text in error.problems if not any(other in text for other in others))
            found |= dict.fromkeys(f"{where}: {text.removeprefix(f'{key}: ')}" for text in texts)
    hint = "; set integer: true" if any("valid integer" in text for text in found) else ""
    return [text + hint for text in list(found)[:1]]
