"""The alerts, one entry each: the metric, its limits, what the alert means and what to try."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from surefoot.settings.config import Config
from surefoot.telemetry import names
from surefoot.telemetry.gauges import (
    HIGH_KL,
    Exploration,
    Gauge,
    Throughput,
    actor_share,
    clipped,
    explained,
    imbalance,
    noise_share,
    plain,
)
from surefoot.telemetry.remedies import Remedy, changed, gentler_updates, switched, wanted_kl
from surefoot.telemetry.sinks import Metrics


@dataclass(frozen=True)
class Limits:
    """Thresholds: levels beyond `bad` raise an alert, levels beyond `good` clear it. If `bad` > `good`, high is bad."""

    bad: float
    good: float

    def is_bad(self, level: float) -> bool:
        """Whether a level is beyond the `bad` threshold."""
        return level >= self.bad if self.bad > self.good else level <= self.bad

    def is_good(self, level: float) -> bool:
        """Whether a level is beyond the `good` threshold."""
        return level <= self.good if self.bad > self.good else level >= self.good


@dataclass(frozen=True)
class Alert:
    """Raised if the median level of the last `window` iterations is bad; cleared after `calm` consecutive good ones."""

    name: str
    evidence: tuple[str, ...]
    """The metrics behind it, the most informative first; a run may not have all of them."""
    label: str
    meaning: str
    gauge: Callable[[], Gauge]
    limits: Callable[[Config], Limits]
    remedies: Callable[[Config, Metrics], list[Remedy]]
    """What to try, from the settings and the medians of the metrics while it was raised."""
    window: int = 10
    calm: int = 10
    is_grave: bool = False
    """Whether it can destroy the learned policy, rather than only slow down the run."""

    @property
    def key(self) -> str:
        """The metric of the alert: 1 while it is raised, 0 once when it is cleared."""
        return names.ALERT_PREFIX + self.name


_NEVER = Limits(-1, 0)
"""Of a level that is never negative."""


def _kl_limits(config: Config) -> Limits:
    """0.05, or more if the settings allow a larger KL divergence."""
    bad = max(HIGH_KL, 2 * wanted_kl(config))
    return Limits(bad, 0.6 * bad)


def is_risk_averse(config: Config) -> bool:
    """Whether the objective includes the tail of the returns, so that exploration noise is a cost."""
    estimator = config.ppo.estimator
    has_limit, beta = getattr(estimator, "limit", None) is not None, getattr(estimator, "beta", 0.0)
    return estimator.kind == "risk" and (has_limit or beta > 0)


def _collapse_limits(config: Config) -> Limits:
    """None where the objective, or a hook, makes the policy deterministic on purpose."""
    is_wanted = is_risk_averse(config) or any(hook.kind == "fade_noise" for hook in config.hooks.values())
    return Limits(-math.inf if is_wanted else 0.05, 0.1)


def _better_values(config: Config, typical: Metrics) -> list[Remedy]:
    tips = []
    if not config.normalize.returns and not config.normalize.reward:
        why = " (or normalize.reward): the scale of the returns may be hard to learn"
        tips.append(switched("normalize.returns", True, why))
    if not config.normalize.obs:
        tips.append(switched("normalize.obs", True, " if observations are not on the scale of 1"))
    if config.policy.share_trunk:
        tips.append(switched("policy.share_trunk", False, ": actor and critic may interfere with each other"))
    if config.ppo.value_coef < 0.5:
        tips.append(changed(config, "ppo.value_coef", 0.5))
    lr = config.optimizer.lr
    either = f"change optimizer.lr from {lr:g} to {lr * 3:.1g} if the value loss falls slowly, else to {lr / 3:.1g}"
    tips += [
        Remedy(either),
        Remedy("if the agent has not found any reward yet, encourage exploration or shape the reward"),
    ]
    return tips


def _more_exploration(config: Config, typical: Metrics) -> list[Remedy]:
    coef = config.ppo.entropy_coef
    return [changed(config, "ppo.entropy_coef", max(0.01, 3 * coef)), gentler_updates(config, typical)[0]]


def _wider_noise(config: Config, typical: Metrics) -> list[Remedy]:
    noise, floor, coef = config.policy.distribution, _std_floor(config), config.ppo.entropy_coef
    tips = [Remedy(f"raise policy.distribution.std_floor from {floor:g} to {5 * floor:.1g} (needs a new run)")]
    log_std = getattr(noise, "log_std", 0.0)
    if log_std < -1:
        tips.append(
            Remedy(
                f"raise policy.distribution.log_std from {log_std:g} to -1 for a larger initial std (needs a new run)"
            )
        )
    if getattr(noise, "std", "learned") != "fixed":
        tips.append(changed(config, "ppo.entropy_coef", max(0.001, 3 * coef)))
    return tips


def _quieter_start(config: Config, typical: Metrics) -> list[Remedy]:
    tips, warmup = [], getattr(config.ppo.estimator, "warmup", 0)
    if names.STD in typical and not any(hook.kind == "fade_noise" for hook in config.hooks.values()):
        tips.append(
            Remedy(
                f"set hooks.fade_noise.end to about {typical[names.STD] / 8:.1g}: it lowers train/std, now"
                f" {typical[names.STD]:.2g}, which must be small beside the actions that matter"
            )
        )
    updates = config.train.steps / (config.rollout.num_envs * config.rollout.num_steps)
    if warmup < 0.05 * updates:
        tips.append(
            Remedy(
                f"raise ppo.estimator.warmup from {warmup} to about {math.ceil(0.1 * updates)} updates: the objective"
                " begins with the mean, which suffers less from noise"
            )
        )
    if config.ppo.entropy_coef > 0:
        tips.append(switched("ppo.entropy_coef", 0.0, ": it rewards noise"))
    return [*tips, Remedy("compare the result with that of less noise; docs/risk.md says when to expect a difference")]


def _std_floor(config: Config) -> float:
    """The std floor of distributions that have one, else 0."""
    return getattr(config.policy.distribution, "std_floor", 0.0)


def _floor_limits(config: Config) -> Limits:
    floor = _std_floor(config)
    return Limits(-math.inf if is_risk_averse(config) else 2 * floor, 3 * floor)


def _finite_numbers(config: Config, typical: Metrics) -> list[Remedy]:
    tips = [changed(config, "optimizer.lr", config.optimizer.lr / 10, about="about ")]
    if config.ppo.max_grad_norm is None:
        tips.append(switched("ppo.max_grad_norm", 0.5))
    if config.policy.precision != "float32":
        tips.append(switched("policy.precision", "float32"))
    if not (config.normalize.returns or config.normalize.reward):
        tips.append(switched("normalize.returns", True, ": very large rewards can overflow"))
    return [*tips, Remedy("check your own modules for log, sqrt and division")]


def _flowing_gradients(config: Config, typical: Metrics) -> list[Remedy]:
    tips = [Remedy("check that none of its parameters is frozen (requires_grad) and that its loss is not constant")]
    if config.ppo.value_coef < 0.1:
        tips.append(changed(config, "ppo.value_coef", 0.5))
    if config.ppo.clip_value is not None:
        clip = config.ppo.clip_value
        tips.append(Remedy(f"raise ppo.clip_value from {clip:g} or set it to none: clipped errors have no slope"))
    if config.policy.activation == "relu":
        why = ": all units of a ReLU layer may be inactive (needs a new run)"
        tips.append(switched("policy.activation", "elu", why))
    return [*tips, changed(config, "optimizer.lr", config.optimizer.lr / 3, about="about ")]


def _starved_limits(config: Config) -> Limits:
    """The share at which the norm of the actor's clipped gradient is Adam's epsilon.

    Its elements are far smaller still, and Adam's steps shrink with elements below its epsilon. (Without
    an epsilon, clipping would not matter: Adam divides by the size of its gradients.)
    """
    if config.ppo.max_grad_norm is None or config.optimizer.clip_grad == "apart":
        return _NEVER
    bad = config.optimizer.adam_eps / config.ppo.max_grad_norm
    return Limits(bad, 3 * bad)


def _fed_actor(config: Config, typical: Metrics) -> list[Remedy]:
    tips = []
    if not config.normalize.returns:
        tips.append(switched("normalize.returns", True, ": the critic's loss then does not grow with the rewards"))
    if not config.normalize.reward:
        tips.append(switched("normalize.reward", True, ": rewards then have about the same scale in every task"))
    if not config.policy.share_trunk:
        tips.append(
            switched("optimizer.clip_grad", "apart", ": the actor's gradient then does not depend on the critic's")
        )
    return [*tips, Remedy("divide the rewards by a constant, so that returns are on the scale of 1 to 100")]


def _vanishing(part: str, metric: str) -> Alert:
    return Alert(
        f"{part}_vanishing_gradients",
        (metric, names.VALUE_LOSS),
        f"no gradient in {part}",
        f"the gradient of {part} is practically 0: it does not learn",
        lambda: plain(metric),
        lambda config: Limits(1e-8, 1e-7),
        _flowing_gradients,
    )


def _alike_critics(config: Config, typical: Metrics) -> list[Remedy]:
    tips = [Remedy("check whether the losses or inputs of the two critics differ in scale")]
    if not config.normalize.returns:
        tips.append(switched("normalize.returns", True, ": both critics then learn on the same scale"))
    return [*tips, changed(config, "optimizer.lr", config.optimizer.lr / 3, about="about ")]


def _steady_workers(config: Config, typical: Metrics) -> list[Remedy]:
    timeout_s = getattr(config.rollout.engine, "step_timeout_s", 60)
    return [
        Remedy("see log.txt for the traceback and the index and seed of the env"),
        Remedy(f"if the env is slow rather than hung, raise rollout.engine.step_timeout_s from {timeout_s:g}"),
    ]


def _steady_machine(config: Config, typical: Metrics) -> list[Remedy]:
    return [
        Remedy(
            "check with top whether the machine is swapping or throttled; time spent waiting for a CPU is excluded here"
        ),
        Remedy(
            "compare time/rollout_s and time/learn_s: if only the rollout became slower, the environment is the cause"
        ),
    ]


ALERTS = (
    Alert(
        "step_skipped",
        (names.SKIPPED_STEPS,),
        "gradient steps skipped",
        "the loss or its gradient was NaN or infinite, so these gradient steps were skipped",
        lambda: plain(names.SKIPPED_STEPS),
        lambda config: Limits(1, 0),
        _finite_numbers,
        window=1,
        is_grave=True,
    ),
    Alert(
        "worker_restarted",
        (names.WORKER_RESTARTS,),
        "worker restarted",
        "an environment process crashed or hung and was restarted; its running episodes were cut off",
        lambda: plain(names.WORKER_RESTARTS),
        lambda config: Limits(1, 0),
        _steady_workers,
        window=1,
    ),
    Alert(
        "kl_high",
        (names.APPROX_KL,),
        "KL high",
        "the policy changes too much per update: training is unstable and the policy may collapse",
        lambda: plain(names.APPROX_KL),
        _kl_limits,
        gentler_updates,
        is_grave=True,
    ),
    Alert(
        "clip_fraction_high",
        (names.CLIP_FRACTION, names.CLIP_RANGE),
        "clip fraction high",
        "most samples are clipped: updates push the policy past the clip range, and clipped samples have no gradient",
        lambda: clipped,
        lambda config: Limits(1.0, 0.8),
        gentler_updates,
    ),
    Alert(
        "value_not_learning",
        (names.EXPLAINED_VARIANCE, names.VALUE_ERROR),
        "explained variance below 0",
        "the critic predicts returns worse than a constant would, so advantages are mostly noise",
        lambda: explained,
        lambda config: Limits(-0.02, 0.1),  # an untrained critic is at about 0
        _better_values,
        window=30,
    ),
    Alert(
        "entropy_collapse",
        (names.STD, names.ENTROPY_LOSS),
        "entropy collapsed",
        "the policy has less than 5% of its initial randomness: it no longer explores and hardly learns anything new",
        Exploration,
        _collapse_limits,
        _more_exploration,
    ),
    Alert(
        "std_at_floor",
        (names.STD,),
        "std at its floor",
        "the standard deviation of the actions is at policy.distribution.std_floor: the policy no longer explores",
        lambda: plain(names.STD),
        _floor_limits,
        _wider_noise,
    ),
    Alert(
        "noise_decides",
        (names.RISK_NOISE_COST, names.RISK_CVAR, names.STD),
        "noise decides",
        "exploration noise costs more than the objective is worth: the agent may settle where noise does least harm,"
        " and not where its deterministic policy would be best",
        lambda: noise_share,
        lambda config: Limits(1.0, 0.5),
        _quieter_start,
        window=30,
    ),
    _vanishing("critic", names.CRITIC_GRAD_NORM),
    _vanishing("critic1", names.CRITIC1_GRAD_NORM),
    _vanishing("critic2", names.CRITIC2_GRAD_NORM),
    Alert(
        "twin_critics_gradient_imbalance",
        (names.CRITICS_GRAD_RATIO, names.CRITIC1_GRAD_NORM, names.CRITIC2_GRAD_NORM),
        "twin critics unbalanced",
        "the gradient of one twin critic is more than 100 times that of the other: only one of them learns",
        lambda: imbalance,
        lambda config: Limits(100, 30),
        _alike_critics,
    ),
    Alert(
        "actor_starved",
        (names.ACTOR_GRAD_NORM, names.GRAD_NORM),
        "actor starved",
        "the critic's gradient is so large that clipping both together leaves the actor almost none: it hardly learns",
        lambda: actor_share,
        _starved_limits,
        _fed_actor,
    ),
    Alert(
        "throughput_drop",
        (names.STEPS_PER_SECOND, names.CPU_WAIT),
        "throughput dropped",
        "steps per second have stayed below a third of the best speed of this run",
        Throughput,
        lambda config: Limits(1 / 3, 1 / 2),
        _steady_machine,
        window=1,
    ),
)
