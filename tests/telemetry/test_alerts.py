"""The entries: complete, and with remedies that name settings which exist."""

import re
from pathlib import Path

import pytest

from surefoot.settings.config import Config, known_keys
from surefoot.settings.layers import build_config
from surefoot.telemetry import names
from surefoot.telemetry.alerts import ALERTS, Alert

BY_NAME = {alert.name: alert for alert in ALERTS}
SETTING = re.compile(r"\b(?:env|policy|rollout|ppo|optimizer|normalize|train|log)\.[a-z_]+\b")
ODD = {
    "policy.share_trunk": True, "policy.log_std": -4, "policy.precision": "bfloat16", "ppo.max_grad_norm": None,
    "ppo.value_coef": 0.1, "ppo.target_kl": None, "normalize.obs": False,
}  # fmt: skip


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
@pytest.mark.parametrize("changes", [{}, ODD], ids=["defaults", "odd"])
def test_remedies_name_real_settings(alert: Alert, changes: dict) -> None:
    remedies = alert.remedies(build_config({}, changes), {names.APPROX_KL: 0.2})
    assert remedies
    assert all(remedy.setting in {"", *known_keys()} for remedy in remedies)
    named = [key for remedy in remedies for key in SETTING.findall(remedy.text.replace("log.txt", ""))]
    assert set(named) <= set(known_keys())
    assert named or alert.name == "throughput_drop"


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_an_entry_is_complete(alert: Alert) -> None:
    limits = alert.limits(Config())
    assert limits.is_bad(limits.bad)
    assert limits.is_good(limits.good)
    assert not limits.is_bad(limits.good)
    assert not limits.is_good(limits.bad)
    assert alert.key == f"warn/{alert.name}"
    assert alert.evidence
    assert len(BY_NAME) == len(ALERTS)


@pytest.mark.parametrize(
    ("actor", "whole", "changes", "is_bad"),
    [
        (0.128, 7.5e4, {}, True),  # CartPole, rewards times 1000: it stands still
        (0.107, 1.16e5, {"optimizer.adam_eps": 1e-8}, False),  # the same with a smaller epsilon: it learns
        (0.137, 1.2e5, {"optimizer.clip_grad": "apart"}, False),
        (0.137, 1.2e5, {"ppo.max_grad_norm": None}, False),
        (0.127, 23.3, {}, False),  # CartPole as it is
        (0.47, 249.0, {}, False),  # Pendulum without normalized returns
        (1e-4, 70.0, {}, False),  # a policy that has become deterministic
        (0.0, 70.0, {}, False),  # frozen
    ],
)
def test_an_actor_starves_if_adam_no_longer_sees_its_gradient(
    actor: float, whole: float, changes: dict, is_bad: bool
) -> None:
    alert = BY_NAME["actor_starved"]
    level = alert.gauge()({names.ACTOR_GRAD_NORM: actor, names.GRAD_NORM: whole})
    assert level is not None
    assert alert.limits(build_config({}, changes)).is_bad(level) == is_bad


def test_remedies_have_the_values_of_the_run() -> None:
    config = build_config({}, {"optimizer.lr": 0.01, "ppo.epochs": 20})
    assert [remedy.text for remedy in BY_NAME["kl_high"].remedies(config, {})] == [
        "lower optimizer.lr from 0.01 to about 0.003",
        "set ppo.target_kl to 0.02 to stop an update once the KL divergence is too high",
        "lower ppo.epochs from 20 to 10: fewer passes over each rollout",
    ]


@pytest.mark.parametrize(
    ("kl", "changes", "lr", "excess"),
    [
        (0.06, {}, "0.006", "3 times 0.02"),
        (0.5, {}, "0.002", "25 times 0.02"),
        (0.5, {"ppo.target_kl": 0.1}, "0.004", "5 times 0.1"),
        (20_000.0, {}, "0.0001", "1e+06 times 0.02"),
    ],
)
def test_advice_scales_with_the_kl(kl: float, changes: dict, lr: str, excess: str) -> None:
    config = build_config({"optimizer.lr": 0.01, "ppo.epochs": 20}, changes)
    first, *_ = BY_NAME["kl_high"].remedies(config, {names.APPROX_KL: kl})
    assert first.text.startswith(f"lower optimizer.lr from 0.01 to about {lr}: the KL divergence is {excess}, and it")
    assert (first.setting, first.value) == ("optimizer.lr", float(lr))


def test_a_rate_that_follows_the_kl_is_not_lowered() -> None:
    config = build_config({"schedules.lr": {"kind": "kl_adaptive", "desired_kl": 0.1}})
    first, *_ = BY_NAME["kl_high"].remedies(config, {names.APPROX_KL: 0.5})
    assert first.text == "lower schedules.lr.desired_kl from 0.1 to 0.05"


def test_a_higher_kl_that_was_asked_for_is_no_alert() -> None:
    limits = BY_NAME["kl_high"].limits
    assert limits(Config()).bad == 0.05
    assert limits(build_config({}, {"ppo.target_kl": 0.02})).bad == 0.05
    assert limits(build_config({}, {"ppo.target_kl": 0.1})).bad == 0.2
    adaptive = {"schedules.lr": {"kind": "kl_adaptive", "desired_kl": 0.1}}
    assert limits(build_config({}, adaptive)).bad == 0.2
    assert limits(build_config(adaptive, {"schedules.lr.kind": "linear"})).bad == 0.05, "not used by this schedule"
    old = {"optimizer.desired_kl": 0.1, "optimizer.lr_schedule": "kl_adaptive"}
    assert limits(build_config({}, old)).bad == 0.2


def test_the_floor_is_that_of_the_config() -> None:
    limits = BY_NAME["std_at_floor"].limits(build_config({}, {"policy.std_floor": 0.05}))
    assert (limits.bad, limits.good) == pytest.approx((0.1, 0.15))


def test_the_guide_has_every_alert_and_every_metric() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "watching.md").read_text(encoding="utf-8")
    for alert in ALERTS:
        assert f"| `{alert.name}` |" in guide
    for constant, name in vars(names).items():
        if constant.isupper() and isinstance(name, str) and not constant.endswith("_PREFIX"):
            area, _, metric = name.partition("/")
            assert re.search(rf"\| `{area}/` \|.*`{metric}`", guide), name
