"""What to try against a problem of a run: remedies, with the settings of the run and the numbers of its metrics."""

import math
from dataclasses import dataclass
from typing import Any

from surefoot.settings.config import Config
from surefoot.telemetry import names
from surefoot.telemetry.sinks import Metrics

USUAL_KL = 0.02
"""The KL divergence per update that is advised where the settings name none."""
_SMALLEST, _LARGEST = 0.01, 0.7
"""Limits of the factor by which a learning rate is lowered."""


@dataclass(frozen=True)
class Remedy:
    """Advice in words; if it changes a setting, its name and the value that the advice is about."""

    text: str
    setting: str = ""
    value: Any = None


def setting_of(config: Config, name: str) -> Any:
    """The value of `section.key`."""
    section, _, key = name.partition(".")
    return getattr(getattr(config, section), key)


def changed(config: Config, setting: str, value: float, why: str = "", about: str = "") -> Remedy:
    """Raise or lower a number."""
    now, value = setting_of(config, setting), float(f"{value:.1g}") if isinstance(value, float) else value
    verb = "raise" if value > now else "lower"
    text = f"{verb} {setting} from {now:g} to {about}{value:g}" + f": {why}" * bool(why)
    return Remedy(text, setting, value)


def switched(setting: str, value: Any, why: str = "") -> Remedy:
    """Set something that is not compared by size."""
    shown = str(value).lower() if isinstance(value, bool) else value
    return Remedy(f"set {setting} to {shown}" + f"{why}" * bool(why), setting, value)


def wanted_kl(config: Config) -> float:
    """The KL divergence per update that the settings ask for."""
    adaptive = max((getattr(schedule, "desired_kl", 0.0) for schedule in config.schedules.values()), default=0.0)
    return max(adaptive, config.ppo.target_kl or 0.0) or USUAL_KL


def gentler_updates(config: Config, typical: Metrics) -> list[Remedy]:
    """Smaller updates, the smaller the further the KL divergence is beyond its target."""
    ppo, target = config.ppo, wanted_kl(config)
    excess = typical[names.APPROX_KL] / target if names.APPROX_KL in typical else None
    tips = [_lower_rate(config, excess, target)]
    if ppo.target_kl is None:
        tips.append(switched("ppo.target_kl", USUAL_KL, " to stop an update once the KL divergence is too high"))
    if ppo.epochs > 3 and (excess is None or excess >= 2):
        tips.append(changed(config, "ppo.epochs", max(3, ppo.epochs // 2), "fewer passes over each rollout"))
    return tips


def _lower_rate(config: Config, excess: float | None, target: float) -> Remedy:
    schedule, lr = config.schedules.get("lr"), config.optimizer.lr
    if schedule is not None and hasattr(schedule, "desired_kl"):
        return Remedy(f"lower schedules.lr.desired_kl from {schedule.desired_kl:g} to {schedule.desired_kl / 2:.1g}")
    if excess is None or excess <= 1:
        return changed(config, "optimizer.lr", lr / 3, about="about ")
    factor = min(max(1 / math.sqrt(excess), _SMALLEST), _LARGEST)
    why = f"the KL divergence is {excess:.3g} times {target:g}, and it grows with the square of the learning rate"
    return changed(config, "optimizer.lr", lr * factor, why, "about ")
