"""The evaluations of a run: their metrics, and the returns of single episodes in evaluations.jsonl."""

import math
import os
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surefoot.inspection.run_record import RunRecord
from surefoot.telemetry import names
from surefoot.telemetry.records import Record, is_number, records_by_step

FILE_NAME = "evaluations.jsonl"


@dataclass(frozen=True)
class EvaluatedEpisodes:
    """Total rewards of the episodes of an evaluation, and whether each was won if the env reports it."""

    step: int
    rewards: tuple[float, ...]
    wins: tuple[float, ...] | None
    are_identical: bool = False
    """Whether the episodes are the same, step by step."""

    @property
    def figures(self) -> dict[str, float]:
        """Mean and standard deviation by the names of their metrics."""
        mean, std = statistics.fmean(self.rewards), statistics.pstdev(self.rewards)
        return {names.EVAL_REWARD: mean, names.EVAL_REWARD_STD: std}


@dataclass(frozen=True)
class Evaluated:
    """An evaluation: the step of its policy, and its metrics (`eval/...`)."""

    step: int
    figures: dict[str, float]


def evaluations_of(run: RunRecord) -> list[Evaluated]:
    """Every evaluation once, by the step of the policy.

    An evaluation that a kill prevented is made up for when the run is resumed. Its returns have the step of the policy,
    but its metrics are in the record of the next iteration, or nowhere if there is none.
    """
    episodes = read_evaluations(run.path)
    recorded = {int(record["step"]): _figures(record) for record in run.records if names.EVAL_REWARD in record}
    late = {step: one for step, one in episodes.items() if step not in recorded}
    found = {_step_of(step, figures, episodes, late): figures for step, figures in recorded.items()}
    found = {step: one.figures for step, one in late.items()} | found
    return [Evaluated(step, found[step]) for step in sorted(found)]


def _step_of(
    step: int,
    figures: Mapping[str, float],
    episodes: Mapping[int, EvaluatedEpisodes],
    late: Mapping[int, EvaluatedEpisodes],
) -> int:
    """The step of the policy that the metrics of a record describe."""
    before = [one for one in late if one < step]
    if step in episodes or not before:
        return step
    mean = late[max(before)].figures[names.EVAL_REWARD]
    return max(before) if math.isclose(mean, figures[names.EVAL_REWARD], rel_tol=1e-9, abs_tol=1e-12) else step


def _figures(record: Record) -> dict[str, float]:
    return {name: value for name, value in record.items() if name.startswith(names.EVAL_PREFIX)}


def read_evaluations(run: Path) -> dict[int, EvaluatedEpisodes]:
    """Evaluations by step; empty for runs that were not evaluated or did not write the file yet."""
    path = run / FILE_NAME
    return records_by_step(path, _episodes) if os.path.isfile(path) else {}


def _episodes(raw: Any) -> EvaluatedEpisodes:
    rewards, wins = raw["rewards"], raw.get("wins")
    if not isinstance(rewards, list) or not rewards or not all(map(is_number, rewards)):
        raise ValueError("no rewards")
    is_known = isinstance(wins, list) and all(win is None or (is_number(win) and 0 <= win <= 1) for win in wins)
    won = tuple(math.nan if win is None else float(win) for win in wins) if is_known else None
    return EvaluatedEpisodes(int(raw["step"]), tuple(map(float, rewards)), won, raw.get("are_identical") is True)
