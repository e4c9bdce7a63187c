"""Scales that make the scores of different tasks comparable."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from surefoot.errors import ConfigError
from surefoot.settings.layers import read_yaml
from surefoot.telemetry.records import is_number

NONE, MINMAX = "none", "minmax"

Scale = tuple[float, float]
"""The scores that count as 0 and as 1."""


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
