"""Quantile critics: known distributions, clips, and the scale of returns."""

import copy

import numpy as np
import pytest
import torch
from torch.distributions import Normal

from surefoot.policies.critics import ValueTargets, critics
from surefoot.policies.critics.quantile import CLIPS, QuantileCritic, clipped_quantiles, midpoints
from surefoot.settings.config import NormalizeConfig, PolicyConfig
from surefoot.statistics.risk import cvar


def critic_of(returns: bool = False, **settings: object) -> QuantileCritic:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = PolicyConfig(critic={"kind": "quantile", **settings})
        critic = critics["quantile"](1, config, NormalizeConfig(returns=returns))
    assert isinstance(critic, QuantileCritic)
    return critic


GRID = torch.cat(
    (torch.linspace(-500, -10, 100_000), torch.linspace(-10, 10, 200_001), torch.linspace(10, 500, 100_000))
)
GRID = GRID.double()
T = GRID / 3**0.5
CDFS = {
    "normal": Normal(0.0, 1.0).cdf(GRID),
    "t3": 0.5 + (T / (1 + T * T) + T.atan()) / torch.pi,
    "bimodal": 0.5 * Normal(-3.0, 0.5).cdf(GRID) + 0.5 * Normal(2.0, 1.0).cdf(GRID),
}
CVAR = {"normal": -2.06271, "t3": -2.23681 * 3**0.5, "bimodal": -3.87749}
"""At alpha 0.05, from closed forms."""
SAMPLES = 1001


def quantiles_of(name: str, count: int) -> torch.Tensor:
    return torch.from_numpy(np.interp(midpoints(count).numpy(), CDFS[name].numpy(), GRID.numpy()))


def fitted(name: str, count: int) -> torch.Tensor:
    """What a critic with kappa 0 learns from evenly spread samples of a distribution, in one state."""
    samples = quantiles_of(name, SAMPLES).float()
    critic = critic_of(num_quantiles=count, kappa=0.0)
    latent, optimizer = torch.ones(SAMPLES, 1), torch.optim.Adam(critic.parameters(), lr=0.1)
    for step in range(600):
        optimizer.param_groups[0]["lr"] = 0.1 * (1 - step / 600)
        optimizer.zero_grad()
        (critic.loss(critic(latent), ValueTargets(samples, samples, None)) * count).backward()
        optimizer.step()
    return critic(torch.ones(1, 1))[0].detach()


@pytest.mark.parametrize("name", CDFS)
def test_known_distributions_are_recovered(name: str):
    exact, errors = CVAR[name], []
    for count in (21, 101):
        found = fitted(name, count).double()
        expected = quantiles_of(name, count)
        inner = slice(1, -1)  # the outermost samples are few
        assert ((found - expected).abs() < 0.05 + 0.03 * expected.abs())[inner].all()
        ours, best = (float(cvar(quantiles.numpy(), 0.05)) for quantiles in (found, expected))
        assert ours == pytest.approx(best, abs=0.05 * abs(exact))
        errors.append(abs(ours - exact) / abs(exact))
    assert errors[1] < errors[0]


@pytest.mark.parametrize("mode", CLIPS)
def test_a_clip_changes_nothing_within_its_range_and_holds_beyond(mode: str):
    generator = torch.Generator().manual_seed(0)
    old = torch.randn(32, 9, generator=generator, dtype=torch.float64)
    near, far = (old + scale * torch.randn(old.shape, generator=generator, dtype=torch.float64) for scale in (0.01, 3))
    torch.testing.assert_close(clipped_quantiles(near, old, 0.2, mode), near)
    clipped = clipped_quantiles(far, old, 0.2, mode)
    assert (clipped.mean(-1) - old.mean(-1)).abs().max() <= 0.2 + 1e-9
    if mode == "quantiles":
        assert (clipped - old).abs().max() <= 0.2 + 1e-9
    if mode == "mean":  # the form stays
        torch.testing.assert_close(clipped - clipped.mean(-1, keepdim=True), far - far.mean(-1, keepdim=True))
    if mode == "mean_and_spread":
        spread = clipped.std(-1, correction=0) - old.std(-1, correction=0)
        assert spread.abs().max() <= 0.2 + 1e-6


@pytest.mark.parametrize("mode", CLIPS)
def test_gradients_are_those_of_finite_differences(mode: str):
    critic = critic_of(num_quantiles=6, clip=mode, kappa=0.7).double()
    generator = torch.Generator().manual_seed(1)
    prediction, old = (torch.randn(5, 6, generator=generator, dtype=torch.float64) for _ in range(2))
    returns = torch.randn(5, generator=generator, dtype=torch.float64)
    targets = ValueTargets(returns, old.mean(-1), 0.3, old)
    assert torch.autograd.gradcheck(lambda p: critic.loss(p, targets), prediction.requires_grad_(), atol=1e-5)


def test_predictions_stay_when_the_scale_of_returns_jumps():
    critic = critic_of(returns=True, num_quantiles=5)
    latent = torch.randn(20, 1)
    critic.absorb(torch.randn(100))
    before = critic.decode(critic(latent))
    critic.absorb(1000 + 100 * torch.randn(1000))
    torch.testing.assert_close(critic.decode(critic(latent)), before, rtol=1e-4, atol=2e-2)
    careless = copy.deepcopy(critic)
    assert careless.returns is not None
    careless.returns.absorb(-5000 + 3000 * torch.randn(10_000))  # without rescaling the head
    assert (careless.decode(careless(latent)) - before).abs().max() > 100


def test_midpoints():
    torch.testing.assert_close(midpoints(4), torch.tensor([0.125, 0.375, 0.625, 0.875]))
