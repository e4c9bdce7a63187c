"""The returns of single episodes in a run directory: evaluations.jsonl, one line per evaluation."""

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surefoot.telemetry.records import is_number, records_by_step

FILE_NAME = "evaluations.jsonl"


@dataclass(frozen=True)
class EvaluatedEpisodes:
    """Total rewards of the episodes of an evaluation, and whether each was won if the env reports it."""

    step: int
    rewards: tuple[float, ...]
    wins: tuple[float, ...] | None


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
    return EvaluatedEpisodes(int(raw["step"]), tuple(map(float, rewards)), won)
