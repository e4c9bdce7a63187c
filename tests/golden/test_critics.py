"""Quantile and twin critics."""

import torch
from torch import nn

from surefoot.policies.critics import Critic, ValueTargets, critics
from surefoot.policies.critics.quantile import clipped_quantiles, quantile_huber
from surefoot.settings.config import NormalizeConfig, PolicyConfig

from .cases import Case, float64, golden


def critic_of(settings: dict[str, object]) -> Critic:
    config = PolicyConfig(critic=settings, hidden=())
    return critics[config.critic.kind](1, config, NormalizeConfig())


@golden("quantile_huber")
def test_quantile_huber(case: Case):
    theta, targets = float64(case.given["theta"]), float64(case.given["targets"])
    for kappa in (1.0, 0.5, 2.0):
        expect = case.expect[f"kappa_{kappa}"]
        pairs = quantile_huber(theta, targets, kappa)
        torch.testing.assert_close(pairs * kappa, float64(expect["pairwise"]), rtol=0, atol=1e-7)
        whole = pairs.mean(-1).sum()
        torch.testing.assert_close(whole, float64(expect["iqn_divided_by_kappa_sum_mean"]), rtol=0, atol=1e-7)
    case.differs(quantile_huber(theta, targets, 1.0).mean(-1).sum(), "kappa1_inverted_asymmetry_sum_mean")


@golden("pinball_minimiser")
def test_pinball_minimiser(case: Case):
    data = torch.arange(101.0).double()
    points = torch.arange(0, 100.5, 0.5).double()
    # One quantile at tau 1/2; its weight turns into that of tau where the asymmetry is scaled.
    error = data - points.unsqueeze(-1)
    pinball = torch.where(error < 0, (0.9 - 1) * error, 0.9 * error).mean(-1)
    case.agrees(points[pinball.argmin()], "argmin")
    # 5 quantiles at .1, .3, .5, .7 and .9: the last one has the same minimizer.
    losses = torch.stack([quantile_huber(torch.full((5,), float(p)).double(), data, 0.0)[-1].mean() for p in points])
    torch.testing.assert_close(losses, pinball, rtol=1e-6, atol=1e-6)
    case.differs(points[losses.argmin()], "inverted_asymmetry_argmin")


@golden("quantile_value_clip")
def test_quantile_value_clip(case: Case):
    old, new = float64(case.given["old_quantiles"]), float64(case.given["new_quantiles"])
    clipped = clipped_quantiles(new, old, case.given["eps"], "quantiles")
    case.agrees(clipped, "clipped")
    case.differs(clipped, "clipped_around_old_mean")


@golden("twin_min")
def test_twin_critics_count_the_smaller_value_and_learn_apart(case: Case):
    critic = critic_of({"kind": "twin"})
    prediction = float64([case.given["v1"], case.given["v2"]]).T.requires_grad_()
    target = float64(case.given["target"])
    case.agrees(critic.value(prediction), "value_for_gae")
    case.differs(critic.value(prediction), "gae_from_critic1_only")
    loss = critic.loss(prediction, ValueTargets(target, target, None, prediction.detach()))
    case.agrees(loss, "loss_mean")
    (gradient,) = torch.autograd.grad(loss, prediction)
    torch.testing.assert_close(gradient, (prediction.detach() - target.unsqueeze(-1)) / 2)  # d/dv of (v - R)^2 / 4


@golden("twin_min_distributional")
def test_twin_quantile_critics_choose_a_whole_distribution(case: Case):
    critic = critic_of({"kind": "twin", "of": {"kind": "quantile", "num_quantiles": 2, "alpha": 0.5}})
    prediction = float64([[case.given["q1"], case.given["q2"]]])
    case.agrees(critic.value(prediction)[0], "value")
    case.differs(critic.value(prediction)[0], "elementwise_min_value")
    assert critic.metrics(prediction)["train/value_cvar"] == case.expect["quantiles"][0]


def test_twin_critics_share_no_parameter_behind_the_encoder():
    config = PolicyConfig(critic={"kind": "twin", "of": "quantile"}, hidden=(5, 4))
    critic = critics["twin"](3, config, NormalizeConfig(returns=True))
    names = {name: critic.part_of(name) for name, _ in critic.named_parameters()}
    assert set(names.values()) == {"critic1", "critic2"}
    for index, part in enumerate(("critic1", "critic2")):
        prediction = critic(torch.randn(8, 3))
        critic.zero_grad()
        prediction[:, index].sum().backward()
        moved = {names[name] for name, p in critic.named_parameters() if p.grad is not None and p.grad.abs().sum() > 0}
        assert moved == {part}
    weights = [critic.get_parameter(f"trunks.{i}.layers.0.weight") for i in range(2)]
    assert not torch.equal(*weights)
    assert isinstance(critic, nn.Module)
