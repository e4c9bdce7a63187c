"""Problems of the last evaluation: far below the returns of training, or far below the best evaluation."""

import math
import statistics
from dataclasses import dataclass

from surefoot.inspection.evaluation_record import evaluations_of, read_evaluations
from surefoot.inspection.findings import Evidence, Finding
from surefoot.inspection.preset_advice import advised
from surefoot.inspection.run_record import RunRecord
from surefoot.settings.config import Config
from surefoot.telemetry import names
from surefoot.telemetry.alerts import is_risk_averse
from surefoot.telemetry.remedies import Remedy, changed, gentler_updates, switched

_ENDS = 5
"""Number of records that represent the beginning of a run, and the returns at an evaluation."""
_FEWEST = 10
_FEWEST_EPISODES = 5
_TRAINING_EPISODES = 100
"""Episodes that the mean return of training is computed from."""
_SURE = 3.0
"""Standard errors by which two means must differ."""


@dataclass(frozen=True)
class _Score:
    """The mean reward of an evaluation or of training."""

    mean: float
    step: int
    std: float
    """Standard deviation of the returns of single episodes."""
    episodes: int

    @property
    def error(self) -> float:
        """Standard error of the mean."""
        return self.std / math.sqrt(self.episodes)

    def is_far_below(self, other: "_Score", baseline: float) -> bool:
        """By more than half of what was gained since the baseline, or of the other mean itself, and surely."""
        gap, stake = other.mean - self.mean, max(other.mean - baseline, abs(other.mean))
        return gap > 0.5 * stake and gap > _SURE * math.hypot(self.error, other.error)


def eval_below_training(run: RunRecord, config: Config) -> Finding | None:
    """The deterministic policy earns far less than the sampled actions of training."""
    scores, returns = _scores(run, config), run.series(names.EPISODE_REWARD)
    if config.env.eval_kwargs or not scores or len(returns) < _FEWEST:  # other arguments may mean other rewards
        return None
    last = scores[-1]
    recent = [value for step, value in returns if step <= last.step][-_ENDS:]
    if not recent:
        return None
    training = _Score(statistics.median(recent), last.step, last.std, _TRAINING_EPISODES)
    if not last.is_far_below(training, statistics.median(value for _, value in returns[:_ENDS])):
        return None
    return Finding(
        "eval_below_training",
        "high",
        "evaluation far below training",
        "the deterministic policy, which evaluations use, earns far less than the sampled actions of training",
        (
            Evidence(names.EPISODE_REWARD, training.mean, last.step),
            Evidence(names.EVAL_REWARD, last.mean, last.step),
        ),
        "in the last evaluation",
        (
            f"'surefoot evaluate {run.path} --stochastic' samples actions: if it reaches the return of training, the"
            " policy relies on its noise; otherwise the envs of training and evaluation differ, for example by"
            " parameters that a hook sets",
            *advised(_less_noise(run, config), config),
        ),
    )


def eval_below_best(run: RunRecord, config: Config) -> Finding | None:
    """The last policy is far worse than the best one was; unless the mean is not what is maximized."""
    scores = _scores(run, config)
    if len(scores) < 2 or config.train.best_metric != "mean_reward" or is_risk_averse(config):
        return None
    first, last, best = scores[0], scores[-1], max(scores, key=lambda score: score.mean)
    if not last.is_far_below(best, first.mean):
        return None
    tips = [Remedy(f"use best.safetensors, the policy of step {best.step:,}: 'surefoot evaluate {run.path}' does")]
    tips += gentler_updates(config, {})
    if "lr" not in config.schedules:
        tips.append(Remedy("set schedules.lr to linear: smaller updates at the end"))
    return Finding(
        "eval_below_best",
        "medium",
        "evaluation far below its best",
        "the last policy earns far less in evaluation than the best one of this run",
        (Evidence(names.EVAL_REWARD, best.mean, best.step), Evidence(names.EVAL_REWARD, last.mean, last.step)),
        f"best at step {best.step:,}",
        advised(tips, config),
    )


def _scores(run: RunRecord, config: Config) -> list[_Score]:
    """All evaluations that have enough episodes."""
    episodes = read_evaluations(run.path)
    counts = {step: len(one.rewards) for step, one in episodes.items()}
    return [
        _Score(one.figures[names.EVAL_REWARD], one.step, one.figures.get(names.EVAL_REWARD_STD, 0.0), count)
        for one in evaluations_of(run)
        if (count := counts.get(one.step, config.train.eval_episodes)) >= _FEWEST_EPISODES
    ]


def _less_noise(run: RunRecord, config: Config) -> list[Remedy]:
    """Ways to a policy that does not need its noise, and to a surer evaluation."""
    tips, coef = [], config.ppo.entropy_coef
    if coef > 0:
        tips.append(changed(config, "ppo.entropy_coef", coef / 10, "entropy is rewarded, and the mode is not trained"))
    if stds := run.series(names.STD):
        tips.append(
            Remedy(f"set hooks.fade_noise to lower the noise during the run: train/std is {stds[-1][1]:.2g} at its end")
        )
    tips.append(switched("train.eval_episodes", 100, " for a surer evaluation"))
    return tips
