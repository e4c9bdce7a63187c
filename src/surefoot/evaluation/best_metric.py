"""The setting train.best_metric: the evaluation metric that selects the best policy."""

from collections.abc import Iterable

from surefoot.core.errors import ConfigError
from surefoot.core.registry import nearest
from surefoot.evaluation.evaluate import Evaluation

MEAN_REWARD = "mean_reward"
LOWER = "-"
"""Prefix of a metric's name if lower is better."""


def check_best_metric(wanted: str, metrics: Iterable[str]) -> None:
    """Reject a metric that the envs do not declare."""
    known = [MEAN_REWARD, *metrics]
    if wanted.removeprefix(LOWER) not in known:
        raise ConfigError(
            [
                f"train.best_metric: these envs have no metric '{wanted}'{nearest(wanted, known)} (known:"
                f" {', '.join(known)}; prefix it with '-' if lower is better)"
            ]
        )


def score(evaluation: Evaluation, best_metric: str) -> float | None:
    """A number that is higher for better policies; None if no episode has a value for the metric."""
    name = best_metric.removeprefix(LOWER)
    value = evaluation.mean_reward if name == MEAN_REWARD else evaluation.mean_metric(name)
    return -value if value is not None and best_metric.startswith(LOWER) else value
