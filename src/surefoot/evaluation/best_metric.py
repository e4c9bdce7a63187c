"""The setting train.best_metric: the evaluation metric that selects the best policy."""

from collections.abc import Iterable

from surefoot.errors import ConfigError
from surefoot.evaluation.evaluation import WIN_METRICS, Evaluation, quantile_name
from surefoot.settings.config import TrainConfig
from surefoot.settings.registry import nearest
from surefoot.statistics.alpha import too_few
from surefoot.statistics.risk import QUANTILES
from surefoot.telemetry import names

LOWER = "-"
"""Prefix of a metric's name if lower is better."""
_FIGURES = (
    *(names.EVAL_REWARD, names.EVAL_REWARD_STD, names.EVAL_LENGTH, names.EVAL_CVAR, names.EVAL_WORST),
    *(names.EVAL_SHARPE, *(quantile_name(share) for share in QUANTILES)),
)
_CVAR = names.EVAL_CVAR.removeprefix(names.EVAL_PREFIX)


def check_best_metric(wanted: str, metrics: Iterable[str]) -> None:
    """Reject a metric that evaluations of these envs do not have."""
    of_env = list(metrics)
    wins = [names.EVAL_WIN_RATE] if set(WIN_METRICS) & set(of_env) else []
    known = [*(name.removeprefix(names.EVAL_PREFIX) for name in (*_FIGURES, *wins)), *of_env]
    if wanted.removeprefix(LOWER) not in known:
        raise ConfigError(
            [
                f"train.best_metric: these envs have no metric '{wanted}'{nearest(wanted, known)} (known:"
                f" {', '.join(known)}; prefix it with '-' if lower is better)"
            ]
        )


def score(evaluation: Evaluation, train: TrainConfig) -> float | None:
    """A number that is higher for better policies; None if no episode has a value for the metric."""
    name = names.EVAL_PREFIX + train.best_metric.removeprefix(LOWER)
    value = evaluation.summary(train.cvar_alpha).get(name)
    return -value if value is not None and train.best_metric.startswith(LOWER) else value


def criterion(train: TrainConfig) -> str:
    """The metric with what else its numbers depend on: only scores of the same criterion can be compared."""
    return f"{train.best_metric} (alpha {train.cvar_alpha:g})" if _is_cvar(train) else train.best_metric


def unreliable(train: TrainConfig) -> str | None:
    """A warning if the best policy would be chosen by a CVaR of too few episodes, else None."""
    problem = too_few(train.eval_episodes, train.cvar_alpha) if _is_cvar(train) else None
    return problem and f"train.best_metric is {train.best_metric}, but {problem} (train.eval_episodes)"


def _is_cvar(train: TrainConfig) -> bool:
    return train.best_metric.removeprefix(LOWER) == _CVAR
