"""The score of an evaluation by the objective of a population, with its bootstrap interval."""

import math

import numpy as np

from surefoot.evaluation.best_metric import score
from surefoot.evaluation.evaluation import Evaluation
from surefoot.philox import Stream, words
from surefoot.settings.config import TrainConfig

_RESAMPLES = 400


def score_of(evaluation: Evaluation, train: TrainConfig) -> float | None:
    """A number that is higher for better policies; None if no episode has a value."""
    value = score(evaluation, train)
    return value if value is not None and math.isfinite(value) else None


def interval_of(evaluation: Evaluation, train: TrainConfig) -> list[float] | None:
    """95% bootstrap interval of the score, by drawing episodes with counted randomness."""
    if train.best_metric == "mean_reward":
        return list(evaluation.interval())
    count = len(evaluation.rewards)
    drawn = words(0, np.arange(_RESAMPLES), [0], count, Stream.BOOTSTRAP)[:, 0] % np.uint64(count)
    found = [score_of(_chosen(evaluation, episodes), train) for episodes in drawn.astype(int).tolist()]
    known = [value for value in found if value is not None]
    return np.percentile(known, [2.5, 97.5]).tolist() if known else None


def _chosen(evaluation: Evaluation, episodes: list[int]) -> Evaluation:
    return Evaluation(
        tuple(evaluation.rewards[index] for index in episodes),
        tuple(evaluation.lengths[index] for index in episodes),
        {name: tuple(values[index] for index in episodes) for name, values in evaluation.metrics.items()},
    )
