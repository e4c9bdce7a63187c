"""The section `population` of a config file, and what it means for the settings of each member."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from surefoot.errors import ConfigError
from surefoot.saved_run import resumed_config
from surefoot.settings.config import Config, Count, Number, Positive, known_keys
from surefoot.settings.layers import Raw, build_config, build_section, rebuilt
from surefoot.settings.parts import Section
from surefoot.settings.ranges import Range, Scalar
from surefoot.settings.registry import nearest

NAME = "population"
OWN = {
    "train.steps": "all members train for the same number of steps",
    "train.eval_episodes": "the population evaluates its members: see population.episodes",
    "train.eval_every": "the population evaluates its members after every round",
    "train.best_metric": "all members have the same objective: see population.objective",
    "log.console": "members have no display of their own",
}
"""Settings that the population sets itself."""
_LAST = 1 - 2**-24
_Values = Annotated[tuple[Scalar, ...], Field(strict=False)]


class PopulationConfig(Section):
    """A population: its members, its rounds, and which settings it changes."""

    members: Annotated[Count, Field(ge=2, le=1000)] = Field(8, description="number of members; each is a whole run")
    iterations: Count = Field(10, description="iterations of a member per round; the worst are replaced between rounds")
    truncation: Annotated[float, Field(gt=0, le=0.5)] = Field(
        0.25,
        description="share of the members that is replaced after a round, and of those that are copied; at least 1",
    )
    optimizer: Literal["reset", "copy"] = Field(
        "reset", description="a replaced member starts with a new optimizer, or copies its moments and step count"
    )
    objective: str = Field(
        "mean_reward",
        description="evaluation score that ranks the members: mean_reward, cvar, win_rate or another eval/ metric, a"
        " metric of the environment, or -metric where lower is better",
    )
    episodes: Count = Field(20, description="episodes per evaluation; all members play the same ones")
    seed: Annotated[int, Field(ge=0, lt=2**63)] = Field(
        0, description="random seed of the population: start values, choices, changes and evaluations"
    )
    start: Literal["sample", "config"] = Field(
        "sample", description="start values: drawn from the ranges, or those of the config (and `values`)"
    )
    values: dict[str, _Values] = Field({}, description="start values of tunables by setting: one per member, in order")
    tunables: dict[str, Range] = Field({}, description="ranges of the settings that change, by section.key")
    backend: Literal["local", "inline", "ray"] = Field(
        "local",
        description="where members train: local (processes), inline (one by one in this process, to debug), or ray",
    )
    address: str | None = Field(None, description="address of a Ray cluster; without one, Ray is started here")
    parallel: Number = Field(0, description="members that train at a time; 0 means as many as there are cores")
    patience_s: Positive = Field(
        600.0, description="seconds without an iteration after which the process of a member is killed and restarted"
    )


HOW = ("backend", "address", "parallel", "patience_s")
"""Settings that do not change results: a population may continue with different ones."""


@dataclass(frozen=True)
class Plan:
    """A checked population: its section, and the config that its members share."""

    population: PopulationConfig
    config: Config

    @property
    def names(self) -> tuple[str, ...]:
        """The settings that change, sorted."""
        return tuple(sorted(self.population.tunables))

    @property
    def threads(self) -> int:
        """Cores per member; one unless the config asks for more, so that results do not depend on the machine."""
        return self.config.train.threads or 1

    def member_config(self, member: int, values: Mapping[str, Any]) -> Config:
        """The config of a member, with its values of the tunables."""
        train = self.config.train
        own = {
            "train.seed": train.seed + member,
            "train.threads": self.threads,
            "train.eval_episodes": 0,
            "train.eval_every": 0,
            "train.best_metric": self.population.objective,
            "rollout.workers": self.config.rollout.workers or self.threads,
            "log.console": "off",
        }
        return rebuilt(self.config, own, values)

    def to_json(self) -> Raw:
        """Everything that defines the population."""
        return {**self.config.model_dump(mode="json"), NAME: self.population.model_dump(mode="json")}


def build_plan(raw: Mapping[str, Any]) -> Plan:
    """The plan in raw settings, or one ConfigError that lists everything wrong with it."""
    rest = {key: value for key, value in raw.items() if key != NAME}
    own = raw.get(NAME) or {}
    if not isinstance(own, Mapping):
        raise ConfigError(f"{NAME}: must be a section with keys such as members and tunables")
    problems: list[str] = []
    population, config = PopulationConfig(), Config()
    try:
        population = build_section(PopulationConfig, own, NAME, Range.model_fields)
    except ConfigError as error:
        problems += error.problems
    try:
        config = build_config(rest)
    except ConfigError as error:
        problems += error.problems
    problems = problems or _problems(population, config)
    if problems:
        raise ConfigError(problems)
    return Plan(population, config)


def _problems(population: PopulationConfig, config: Config) -> list[str]:
    problems = []
    if not population.tunables:
        problems.append(f"{NAME}.tunables: name at least one setting with its range, such as optimizer.lr")
    dump = config.model_dump(mode="json")
    for name, values in population.tunables.items():
        problems += _tunable_problems(name, values, config, dump, population)
    for name, given in population.values.items():
        where = f"{NAME}.values.{name}"
        if name not in population.tunables:
            problems.append(f"{where}: not a tunable{nearest(name, population.tunables)}")
        elif len(given) != population.members:
            problems.append(f"{where}: needs {population.members} values, one per member (got {len(given)})")
        else:
            problems += _value_problems(where, name, given, config, population)
    return problems


def _tunable_problems(name: str, values: Range, config: Config, dump: Raw, population: PopulationConfig) -> list[str]:
    where = f"{NAME}.tunables.{name}"
    if name in OWN:
        return [f"{where}: cannot change; {OWN[name]}"]
    try:
        value = setting_of(dump, name)
    except KeyError:
        return [f"{where}: unknown setting{nearest(name, known_keys())}"]
    if isinstance(value, dict | list):
        return [f"{where}: is not a single number, string or boolean; name one of its settings"]
    problems = _value_problems(where, name, values.choices or (values.at(0.0), values.at(_LAST)), config, population)
    if problems or population.start == "sample" or name in population.values:
        return problems
    is_inside = value in values.choices if values.choices else isinstance(value, int | float)
    if not is_inside:
        return [f"{where}: {name} starts with {value!r}, which is not one of its values; set it or use start: sample"]
    return []


def _value_problems(where: str, name: str, values: Any, config: Config, population: PopulationConfig) -> list[str]:
    """Values that the setting does not take, or that cannot change on resume."""
    choices = population.tunables[name].choices
    problems = [f"{where}: {value!r} is not one of its choices" for value in values if choices and value not in choices]
    for value in values:
        try:
            resumed_config(config, {name: value})
        except ConfigError as error:
            problems += [f"{where}: {problem}" for problem in error.problems]
    return problems[:1]


def setting_of(dump: Mapping[str, Any], name: str) -> Any:
    """The value of a dotted setting in the plain form of a config."""
    value: Any = dump
    for key in name.split("."):
        if not isinstance(value, Mapping):
            raise KeyError(name)
        value = value[key]
    return value


def split_population(settings: Mapping[str, Any]) -> tuple[Raw, Raw]:
    """Settings of the command line: those of the population, and all others."""
    own: Raw = {}
    for name, value in settings.items():
        section, _, key = name.partition(".")
        if section == NAME:
            head, _, rest = key.partition(".")
            own[head] = {**own.get(head, {}), rest: value} if rest else value
    return own, {name: value for name, value in settings.items() if name.partition(".")[0] != NAME}
