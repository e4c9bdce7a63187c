"""Groups of runs compared: aggregate scores per task and over tasks, and probabilities of improvement."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from surefoot.errors import ConfigError
from surefoot.inspection.compare.scores import Measure, scores_of
from surefoot.inspection.report.reported_run import ReportedRun
from surefoot.inspection.report.run_groups import ENV, Group, group_runs, label_differences, settings_of
from surefoot.settings.layers import read_yaml
from surefoot.statistics.aggregates import FEWEST, Aggregate, aggregate, improvement
from surefoot.statistics.risk import Estimate
from surefoot.telemetry.records import is_number

_SAME_LENGTH = 1.05
"""Ratio of steps up to which runs count as equally long."""
NONE, MINMAX = "none", "minmax"

Scale = tuple[float, float]
"""The scores that count as 0 and as 1."""


@dataclass(frozen=True)
class Side:
    """Runs that are compared with others, by task; `index` selects the color."""

    index: int
    name: str
    groups: dict[str, Group]
    scores: dict[str, list[float]]


@dataclass(frozen=True)
class Improvement:
    """Probability that a run of the first side scores higher than one of the second."""

    first: str
    second: str
    task: str | None
    """None over all tasks."""
    probability: Estimate

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        return {"of": self.first, "over": self.second, "task": self.task, **self.probability.to_json()}


@dataclass(frozen=True)
class Comparison:
    """Everything that is shown of a comparison."""

    measure: Measure
    normalize: str
    sides: list[Side]
    scales: dict[str, Scale] | None
    by_task: dict[str, dict[str, Aggregate]]
    over_tasks: dict[str, Aggregate]
    """On the scales, of sides that have all tasks; empty without scales."""
    improvements: list[Improvement]
    notes: list[str] = field(default_factory=list)

    @property
    def tasks(self) -> list[str]:
        """The envs of all runs."""
        return list(self.by_task)

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        tasks = {
            task: {
                side.name: {
                    "runs": [str(run.path) for run in side.groups[task].runs],
                    "scores": side.scores[task],
                    **self.by_task[task][side.name].to_json(),
                }
                for side in self.sides
                if task in side.groups
            }
            for task in self.tasks
        }
        return {
            "metric": self.measure.metric,
            "score": self.measure.which,
            "normalize": self.normalize,
            "scales": self.scales,
            "tasks": tasks,
            "over_tasks": {name: found.to_json() for name, found in self.over_tasks.items()},
            "improvement": [one.to_json() for one in self.improvements],
            "notes": self.notes,
        }


def compare(
    runs: Sequence[ReportedRun], measure: Measure, normalize: str = NONE, names: Sequence[str] = ()
) -> Comparison:
    """Compare runs; `names` has the side of each run, or is empty to group them by their settings."""
    sides = _sides(runs, measure, names)
    tasks = list(dict.fromkeys(task for side in sides for task in side.groups))
    everything = {task: [one for side in sides for one in side.scores.get(task, [])] for task in tasks}
    scales = scales_of(normalize, everything)
    by_task = {
        task: {side.name: aggregate([side.scores[task]]) for side in sides if task in side.groups} for task in tasks
    }
    whole = [side for side in sides if len(side.groups) == len(tasks)]
    over_tasks = {} if scales is None else {side.name: aggregate(_on_scales(side, scales)) for side in whole}
    found = Comparison(measure, normalize, sides, scales, by_task, over_tasks, _improvements(sides, whole, tasks))
    found.notes.extend(_notes(found, whole))
    return found


def _sides(runs: Sequence[ReportedRun], measure: Measure, names: Sequence[str]) -> list[Side]:
    scores = dict(zip((run.name for run in runs), scores_of(runs, measure), strict=True))
    members: dict[str, dict[str, list[ReportedRun]]] = {}
    for run, name in zip(runs, names or _names_by_settings(runs), strict=True):
        members.setdefault(name, {}).setdefault(settings_of(run)[ENV], []).append(run)
    return [
        Side(
            index,
            name,
            {env: Group(index, name, env, tuple(own)) for env, own in by_env.items()},
            {env: [scores[run.name] for run in own] for env, own in by_env.items()},
        )
        for index, (name, by_env) in enumerate(members.items())
    ]


def _names_by_settings(runs: Sequence[ReportedRun]) -> list[str]:
    """Runs of an env that differ only in their seed belong together; over envs, those with the same differences."""
    groups = group_runs(runs)
    several = len({group.env for group in groups}) > 1
    differences = label_differences([group.runs for group in groups])
    labels = [
        (difference or "all runs") if several else group.label
        for group, difference in zip(groups, differences, strict=True)
    ]
    name_of = {run.name: label for group, label in zip(groups, labels, strict=True) for run in group.runs}
    return [name_of[run.name] for run in runs]


def _on_scales(side: Side, scales: dict[str, Scale]) -> list[list[float]]:
    return [scaled(side.scores[task], scale) for task, scale in scales.items()]


def _improvements(sides: list[Side], whole: list[Side], tasks: list[str]) -> list[Improvement]:
    found = []
    for first, second in combinations(sides, 2):
        for task in tasks:
            if task in first.groups and task in second.groups:
                chance = improvement([first.scores[task]], [second.scores[task]])
                found.append(Improvement(first.name, second.name, task, chance))
        if len(tasks) > 1 and first in whole and second in whole:
            ours, theirs = ([side.scores[task] for task in tasks] for side in (first, second))
            found.append(Improvement(first.name, second.name, None, improvement(ours, theirs)))
    return found


def _runs(side: Side, task: str) -> Sequence[ReportedRun]:
    return side.groups[task].runs if task in side.groups else ()


def _notes(found: Comparison, whole: list[Side]) -> list[str]:
    notes = []
    counts = {(side.name, task): len(own) for side in found.sides for task, own in side.scores.items()}
    few = {key: count for key, count in counts.items() if count < FEWEST}
    if few:
        named = ", ".join(f"{name} has {count} on {task}" for (name, task), count in few.items())
        notes.append(
            f"few runs ({named}): a bootstrap draws only from the runs that there are. One run has no interval, the"
            f" interval of two is their range, and the true one is wider. Train at least {FEWEST} seeds, better 5 to 10"
        )
    for task in found.tasks:
        lengths = [int(run.records[-1]["step"]) for side in found.sides for run in _runs(side, task)]
        if max(lengths) > _SAME_LENGTH * min(lengths):
            notes.append(
                f"the runs on {task} have different lengths, {min(lengths):,} to {max(lengths):,} steps: the longer"
                " ones have learned more"
            )
    if found.measure.which == "best":
        notes.append("the best of several evaluations is too high: part of it is luck, more so with more evaluations")
    if len(found.tasks) > 1 and found.scales is None:
        notes.append(
            "scores of different tasks are aggregated only on a common scale: pass --normalize minmax, or a file with"
            " reference scores"
        )
    if len(found.tasks) > 1 and len(whole) < len(found.sides):
        without = ", ".join(side.name for side in found.sides if side not in whole)
        notes.append(
            f"left out over all tasks, because they lack some: {without}; --names says which runs belong together"
        )
    return notes


def scales_of(wanted: str, scores: Mapping[str, Sequence[float]]) -> dict[str, Scale] | None:
    """The scale of each task: none, the lowest and highest score of all its runs, or those of a YAML file."""
    if wanted == NONE:
        return None
    if wanted == MINMAX:
        return {task: (min(own), max(own)) for task, own in scores.items()}
    found = read_yaml(Path(wanted))
    problems = [
        f"--normalize: {wanted} has no reference scores for {task}; add a line such as '{task}: [0, 500]' (the scores"
        " that count as 0 and as 1)"
        for task in scores
        if task not in found
    ]
    problems += [
        f"--normalize: {wanted}: {task}: must be two different numbers, the scores that count as 0 and as 1"
        for task, scale in found.items()
        if not (isinstance(scale, list) and len(scale) == 2 and all(map(is_number, scale)) and scale[0] != scale[1])
    ]
    if problems:
        raise ConfigError(problems)
    return {task: (float(found[task][0]), float(found[task][1])) for task in scores}


def scaled(scores: Sequence[float], scale: Scale) -> list[float]:
    """Scores on a scale; if all runs have the same score, each is in the middle."""
    low, high = scale
    return [(score - low) / (high - low) if high != low else 0.5 for score in scores]
