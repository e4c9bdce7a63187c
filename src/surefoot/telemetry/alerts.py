"""The alerts: what is watched, from where on it is wrong, what that means and what to try; one entry each."""

from collections.abc import Callable
from dataclasses import dataclass

from surefoot.core.config import Config
from surefoot.telemetry import names
from surefoot.telemetry.gauges import HIGH_KL, Exploration, Gauge, Throughput, clipped, explained, plain


@dataclass(frozen=True)
class Limits:
    """From `bad` on it is wrong, from `good` on it is right again; which of them is larger says which way is wrong."""

    bad: float
    good: float

    def is_bad(self, level: float) -> bool:
        """Whether a level is on the wrong side."""
        return level >= self.bad if self.bad > self.good else level <= self.bad

    def is_good(self, level: float) -> bool:
        """Whether a level is clearly on the right side."""
        return level <= self.good if self.bad > self.good else level >= self.good


@dataclass(frozen=True)
class Alert:
    """Raised when the median level of the last `window` iterations is bad; cleared after `calm` good ones in a row."""

    name: str
    evidence: tuple[str, ...]
    """The metrics that show it, the most telling first; not every run has all of them."""
    label: str
    meaning: str
    gauge: Callable[[], Gauge]
    limits: Callable[[Config], Limits]
    remedies: Callable[[Config], list[str]]
    window: int = 10
    calm: int = 10
    is_grave: bool = False
    """Whether it ruins what has been learned, rather than slowing things down."""

    @property
    def key(self) -> str:
        """The alert's own metric: 1 while it is raised, 0 once when it is cleared."""
        return names.ALERT_PREFIX + self.name


def _kl_limits(config: Config) -> Limits:
    """0.05, unless the settings ask for more."""
    adaptive = max((getattr(schedule, "desired_kl", 0.0) for schedule in config.schedules.values()), default=0.0)
    bad = max(HIGH_KL, 2 * adaptive, 2 * (config.ppo.target_kl or 0.0))
    return Limits(bad, 0.6 * bad)


def gentler_updates(config: Config) -> list[str]:
    """Ways to smaller updates, with the run's own values."""
    ppo, lr = config.ppo, config.optimizer.lr
    tips = [f"lower optimizer.lr from {lr:g} to about {lr / 3:.1g}"]
    if ppo.target_kl is None:
        tips.append("stop updates that go too far: set ppo.target_kl to 0.02")
    if ppo.epochs > 3:
        tips.append(f"fewer passes over the same data: lower ppo.epochs from {ppo.epochs} to {max(3, ppo.epochs // 2)}")
    return tips


def _better_values(config: Config) -> list[str]:
    tips = []
    if not config.normalize.returns and not config.normalize.reward:
        tips.append("returns may be too large or too small to learn: set normalize.returns or normalize.reward to true")
    if not config.normalize.obs:
        tips.append("set normalize.obs to true if observations are not of size 1")
    if config.policy.share_trunk:
        tips.append("actor and critic may be in each other's way: set policy.share_trunk to false")
    if config.ppo.value_coef < 0.5:
        tips.append(f"raise ppo.value_coef from {config.ppo.value_coef:g} to 0.5")
    lr = config.optimizer.lr
    tips.append(f"try another optimizer.lr than {lr:g}: {lr * 3:.1g} if the value loss falls slowly, else {lr / 3:.1g}")
    tips.append("where no reward has been found yet, there is nothing to predict: explore more, or reward progress")
    return tips


def _more_exploration(config: Config) -> list[str]:
    coef = config.ppo.entropy_coef
    raised = f"raise ppo.entropy_coef from {coef:g} to {max(0.01, 3 * coef):.1g}"
    return [raised, f"lower optimizer.lr from {config.optimizer.lr:g} to about {config.optimizer.lr / 3:.1g}"]


def _wider_noise(config: Config) -> list[str]:
    noise, floor, coef = config.policy.distribution, _std_floor(config), config.ppo.entropy_coef
    tips = [f"raise policy.distribution.std_floor from {floor:g} to {5 * floor:.1g} (a new run)"]
    log_std = getattr(noise, "log_std", 0.0)
    if log_std < -1:
        tips.append(f"start wider: raise policy.distribution.log_std from {log_std:g} to -1 (a new run)")
    if getattr(noise, "std", "learned") != "fixed":
        tips.append(f"raise ppo.entropy_coef from {coef:g} to {max(0.001, 3 * coef):.1g}")
    return tips


def _std_floor(config: Config) -> float:
    """Of distributions that have one."""
    return getattr(config.policy.distribution, "std_floor", 0.0)


def _finite_numbers(config: Config) -> list[str]:
    tips = [f"lower optimizer.lr from {config.optimizer.lr:g} to about {config.optimizer.lr / 10:.1g}"]
    if config.ppo.max_grad_norm is None:
        tips.append("set ppo.max_grad_norm to 0.5")
    if config.policy.precision != "float32":
        tips.append("set policy.precision to float32")
    if not (config.normalize.returns or config.normalize.reward):
        tips.append("huge rewards overflow: set normalize.returns to true")
    return [*tips, "look for log, sqrt and division in modules of your own"]


def _steady_workers(config: Config) -> list[str]:
    return [
        "read log.txt: it has the traceback, the env's index and its seed",
        "if the env is slow rather than stuck, raise rollout.engine.step_timeout_s"
        f" from {getattr(config.rollout.engine, 'step_timeout_s', 60):g}",
    ]


def _steady_machine(config: Config) -> list[str]:
    return [
        "look whether the machine swaps or throttles (top); time spent waiting for a CPU is not counted here",
        "compare time/rollout_s and time/learn_s: if only the rollout got slower, it is the environment",
    ]


ALERTS = (
    Alert(
        "step_skipped",
        (names.SKIPPED_STEPS,),
        "steps with NaN or infinity skipped",
        "the loss or its gradient was not finite; those steps were skipped",
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
        "an environment process crashed or hung and was started anew; its episodes were cut off",
        lambda: plain(names.WORKER_RESTARTS),
        lambda config: Limits(1, 0),
        _steady_workers,
        window=1,
    ),
    Alert(
        "kl_high",
        (names.APPROX_KL,),
        "KL high",
        "the policy changes too much in an update: training is unstable, and may unlearn what it has learned",
        lambda: plain(names.APPROX_KL),
        _kl_limits,
        gentler_updates,
        is_grave=True,
    ),
    Alert(
        "clip_fraction_high",
        (names.CLIP_FRACTION, names.CLIP_RANGE),
        "clip fraction high",
        "most samples are clipped: updates go farther than the clip range allows, and much of the data teaches nothing",
        lambda: clipped,
        lambda config: Limits(1.0, 0.8),
        gentler_updates,
    ),
    Alert(
        "value_not_learning",
        (names.EXPLAINED_VARIANCE, names.VALUE_ERROR),
        "explained variance below 0",
        "the critic predicts returns worse than their mean would, so advantages are mostly noise",
        lambda: explained,
        lambda config: Limits(-0.02, 0.1),  # a critic that has learned nothing yet is about 0
        _better_values,
        window=30,
    ),
    Alert(
        "entropy_collapse",
        (names.STD, names.ENTROPY_LOSS),
        "entropy collapsed",
        "less than 5 % of the first randomness is left: the policy no longer explores, and hardly learns anything new",
        Exploration,
        lambda config: Limits(0.05, 0.1),
        _more_exploration,
    ),
    Alert(
        "std_at_floor",
        (names.STD,),
        "std at its floor",
        "the action noise is as small as policy.distribution.std_floor lets it be: the policy no longer explores",
        lambda: plain(names.STD),
        lambda config: Limits(2 * _std_floor(config), 3 * _std_floor(config)),
        _wider_noise,
    ),
    Alert(
        "throughput_drop",
        (names.STEPS_PER_SECOND, names.CPU_WAIT),
        "much slower than before",
        "steps per second have fallen below a third of what this run has reached, and stay there",
        Throughput,
        lambda config: Limits(1 / 3, 1 / 2),
        _steady_machine,
        window=1,
    ),
)
