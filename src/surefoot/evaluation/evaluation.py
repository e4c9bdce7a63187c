"""The result of an evaluation: rewards of single episodes, figures of their mean and risk, and the best metric."""

import logging
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from surefoot.errors import ConfigError
from surefoot.rollout.episode_metrics import mean_of_known
from surefoot.settings.config import TrainConfig
from surefoot.settings.registry import nearest
from surefoot.statistics.alpha import DEFAULT_ALPHA, check_alpha, identical, too_few
from surefoot.statistics.risk import QUANTILES, Risk, cvar, estimated_mean, risk_of
from surefoot.statistics.risk import sharpe as sharpe_of
from surefoot.telemetry import names

WIN_METRICS = ("win", "success", "is_success", "success_rate")
"""Env metrics that say whether an episode was won: the first one that the env declares counts."""
_log = logging.getLogger("surefoot")
LOWER = "-"
"""Prefix of a metric's name if lower is better."""
_CVAR = names.EVAL_CVAR.removeprefix(names.EVAL_PREFIX)


@dataclass(frozen=True, repr=False)
class Evaluation:
    """Rewards, lengths and metrics of the episodes, with summary statistics."""

    rewards: tuple[float, ...]
    lengths: tuple[int, ...]
    metrics: dict[str, tuple[float, ...]] = field(default_factory=dict)
    """Metrics of the env by name, one number per episode; NaN means no value."""
    are_identical: bool = False
    """Whether all episodes, from different seeds, have the same observations and rewards, step by step."""

    def __repr__(self) -> str:
        return f"Evaluation({self.description})"

    @property
    def description(self) -> str:
        """The evaluation in one readable line."""
        low, high = self.interval()
        interval = f"(95% interval of the mean {low:.1f} to {high:.1f})"
        spread = f"± {self.std_reward:.1f} over {len(self.rewards)} episodes {interval}"
        return (
            f"{self.mean_reward:.1f} {spread if len(self.rewards) > 1 else 'in 1 episode'}"
            f", length {self.mean_ep_length:.0f}"
            + "".join(f", {name} {self.shown_metric(name)}" for name in self.metrics)
            + ("" if self.note is None else f"; {self.note}")
        )

    @property
    def note(self) -> str | None:
        """What to know about the figures, if anything."""
        return identical(len(self.rewards)) if self.are_identical else None

    def missing(self, name: str) -> int:
        """Number of episodes without a value of a metric."""
        return sum(map(math.isnan, self.metrics[name]))

    def shown_metric(self, name: str) -> str:
        """The mean of a metric, with the number of episodes that have a value if some have none."""
        mean, missing = self.mean_metric(name), self.missing(name)
        if mean is None:
            return "unknown: no episode has a value"
        return f"{mean:.4g}" + f" (of {len(self.metrics[name]) - missing}, {missing} missing)" * bool(missing)

    def mean_metric(self, name: str) -> float | None:
        """Mean of a metric over the episodes that have a value; None if there are none."""
        return mean_of_known(self.metrics[name])

    @property
    def mean_reward(self) -> float:
        """Mean total reward per episode."""
        return float(np.mean(self.rewards))

    @property
    def std_reward(self) -> float:
        """Standard deviation of the total rewards."""
        return float(np.std(self.rewards))

    @property
    def mean_ep_length(self) -> float:
        """Mean episode length."""
        return float(np.mean(self.lengths))

    def interval(self) -> tuple[float, float]:
        """95% bootstrap confidence interval of the mean reward."""
        _, low, high = estimated_mean(self.rewards)
        return low, high

    def cvar(self, alpha: float = DEFAULT_ALPHA) -> float:
        """Mean total reward of the worst `alpha` share of the episodes, with the fractional rest of the last one."""
        self._warn_if_too_few(check_alpha(alpha))
        return float(cvar(self.rewards, alpha))

    def quantile(self, share: float) -> float:
        """Total reward that a share of the episodes stays below, linearly interpolated: 0.5 is the median."""
        if not 0 <= share <= 1:
            raise ConfigError(f"quantile: must be between 0 and 1 (got {share})")
        return float(np.quantile(self.rewards, share))

    @property
    def worst_episode(self) -> int:
        """Index of the episode with the lowest total reward."""
        return int(np.argmin(self.rewards))

    @property
    def worst_reward(self) -> float:
        """Lowest total reward."""
        return min(self.rewards)

    @property
    def sharpe(self) -> float | None:
        """Mean reward divided by its standard deviation; None for one episode or equal rewards."""
        ratio = float(sharpe_of(self.rewards))
        return None if math.isnan(ratio) else ratio

    @property
    def wins(self) -> tuple[float, ...] | None:
        """Whether each episode was won, as the env reports it (WIN_METRICS): from 0 to 1, NaN for no value.

        None if the env has no such metric, or if its numbers are not between 0 and 1.
        """
        found = next((self.metrics[name] for name in WIN_METRICS if name in self.metrics), None)
        return found if found is not None and all(math.isnan(win) or 0 <= win <= 1 for win in found) else None

    @property
    def win_rate(self) -> float | None:
        """Share of won episodes among those that have a value; None if the env does not report it."""
        return None if self.wins is None else mean_of_known(self.wins)

    def risk(self, alpha: float = DEFAULT_ALPHA) -> Risk:
        """CVaR, quantiles and the other risk figures with 95% bootstrap intervals."""
        self._warn_if_too_few(check_alpha(alpha))
        return risk_of(self.rewards, alpha, self.wins)

    def summary(self, alpha: float = DEFAULT_ALPHA) -> dict[str, float]:
        """Single numbers by their metric name (`eval/...`); a metric of the env hides a figure of the same name."""
        quantiles = np.quantile(self.rewards, QUANTILES).tolist()
        found: dict[str, float | None] = {
            names.EVAL_REWARD: self.mean_reward,
            names.EVAL_REWARD_STD: self.std_reward,
            names.EVAL_LENGTH: self.mean_ep_length,
            names.EVAL_CVAR: float(cvar(self.rewards, alpha)),
            **{quantile_name(share): value for share, value in zip(QUANTILES, quantiles, strict=True)},
            names.EVAL_WORST: self.worst_reward,
            names.EVAL_SHARPE: self.sharpe,
            names.EVAL_WIN_RATE: self.win_rate,
            **{names.EVAL_PREFIX + name: self.mean_metric(name) for name in self.metrics},
        }
        return {name: value for name, value in found.items() if value is not None}

    def to_json(self, alpha: float = DEFAULT_ALPHA) -> dict[str, Any]:
        """The evaluation as JSON."""
        risk = self.risk(alpha)
        return {
            "mean_reward": self.mean_reward,
            "std_reward": self.std_reward,
            "mean_ep_length": self.mean_ep_length,
            "episodes": len(self.rewards),
            "confidence_interval": [risk.mean.low, risk.mean.high],
            "risk": risk.to_json(),
            "are_identical": self.are_identical,
            "rewards": list(self.rewards),
            "lengths": list(self.lengths),
            "metrics": {
                name: {
                    "mean": self.mean_metric(name),
                    "missing": self.missing(name),
                    "values": [None if math.isnan(v) else v for v in values],
                }
                for name, values in self.metrics.items()
            },
        }

    def _warn_if_too_few(self, alpha: float) -> None:
        if problem := too_few(len(self.rewards), alpha):
            _log.warning("%s", problem)


def quantile_name(share: float) -> str:
    """The metric name of a quantile, such as eval/quantile_05."""
    return f"{names.EVAL_QUANTILE_PREFIX}{100 * share:02.0f}"


_FIGURES = (
    *(names.EVAL_REWARD, names.EVAL_REWARD_STD, names.EVAL_LENGTH, names.EVAL_CVAR, names.EVAL_WORST),
    *(names.EVAL_SHARPE, *(quantile_name(share) for share in QUANTILES)),
)


def check_best_metric(wanted: str, metrics: Iterable[str], setting: str = "train.best_metric") -> None:
    """Reject a metric that evaluations of these envs do not have; `setting` names it."""
    of_env = list(metrics)
    wins = [names.EVAL_WIN_RATE] if set(WIN_METRICS) & set(of_env) else []
    known = [*(name.removeprefix(names.EVAL_PREFIX) for name in (*_FIGURES, *wins)), *of_env]
    if wanted.removeprefix(LOWER) not in known:
        raise ConfigError(
            f"{setting}: these envs have no metric '{wanted}'{nearest(wanted, known)} (known:"
            f" {', '.join(known)}; prefix it with '-' if lower is better)"
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
