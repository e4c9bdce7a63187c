"""The risk estimator: capped rewards add up to capped returns, which CVaR is made of; the dual variable is damped."""

import math
from dataclasses import replace

import pytest
import torch

from surefoot.data.records import Rollout
from surefoot.errors import CheckpointError, ConfigError
from surefoot.learning.estimators.gae import GAE
from surefoot.learning.estimators.risk import Risk, capped_rewards, noise_cost
from surefoot.learning.reward_scaler import RewardScaler
from surefoot.learning.scorer import Scorer
from surefoot.policies.critics import Critic
from surefoot.settings.config import PPOConfig
from surefoot.statistics.risk import cvar
from surefoot.storage.saved import Saved
from tests.golden.rollouts import one_row

PPO = PPOConfig(gamma=1.0, gae_lambda=1.0)
NO_CRITIC: Critic = None  # type: ignore[assignment]  # the estimator does not ask it


def risk(**settings: object) -> Risk:
    return Risk(Risk.Settings(kind="risk", **settings), PPO)  # type: ignore[arg-type]


def episodes(*returns: float, length: int = 3) -> Rollout:
    """One row: episodes of some steps each, whose rewards are the same."""
    rewards = [value / length for value in returns for _ in range(length)]
    ended = [step % length == length - 1 for step in range(len(rewards))]
    return one_row(rewards, terminated=ended)


@pytest.mark.parametrize("cap", [-1.0, 0.5, 2.0])
def test_capped_rewards_add_up_to_the_capped_return(cap: float):
    generator = torch.Generator().manual_seed(0)
    rewards = torch.randn(50, 4, generator=generator, dtype=torch.float64)
    sums = rewards.cumsum(0)
    alpha, beta = 0.2, 0.3
    whole = (1 - beta) * sums[-1] + beta / alpha * (sums[-1].clamp(max=cap) - min(0.0, cap))
    torch.testing.assert_close(capped_rewards(rewards, sums, cap, alpha, beta).sum(0), whole)


@pytest.mark.parametrize("alpha", [0.05, 0.3, 1.0])
def test_cvar_is_the_best_capped_mean_at_the_quantile(alpha: float):
    returns = torch.randn(1000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    caps = returns.sort().values
    capped = torch.stack([returns.clamp(max=float(c)).mean() / alpha - c * (1 - alpha) / alpha for c in caps])
    assert capped.max() == pytest.approx(float(cvar(returns.numpy(), alpha)))
    assert caps[capped.argmax()] == pytest.approx(float(returns.quantile(alpha)), abs=0.1)


@pytest.mark.parametrize(("cost", "std", "length"), [(0.5, 0.4, 1), (3.0, 0.05, 4)])
def test_noise_costs_what_a_quadratic_reward_loses_by_it(cost: float, std: float, length: int):
    """E[-cost / 2 (a - 1)^2] of a ~ N(m, std) is -cost / 2 ((m - 1)^2 + std^2), in every step of an episode."""
    rows, generator = 200_000, torch.Generator().manual_seed(0)
    noise = torch.randn(length, rows, generator=generator)
    reward = -cost / 2 * (0.7 + std * noise - 1).square()
    ended = torch.zeros(length, rows, dtype=torch.bool)
    ended[-1] = True
    rollout = replace(
        one_row([0.0]),
        reward=reward,
        log_prob=-noise.square() / 2,
        terminated=ended,
        truncated=torch.zeros_like(ended),
        valid=torch.ones_like(ended),
    )
    assert noise_cost(rollout, reward - reward.mean()) == pytest.approx(length * cost / 2 * std**2, rel=0.05)


def test_the_mean_alone_is_gae():
    rollout = episodes(3, -6, 9)
    ours, plain = risk(beta=0.0).estimate(rollout, NO_CRITIC), GAE(Risk.Settings(), PPO).estimate(rollout, NO_CRITIC)
    torch.testing.assert_close(ours.advantage, plain.advantage)


def test_returns_above_the_cap_earn_nothing():
    estimator = risk(alpha=0.5, beta=1.0)
    targets = estimator.estimate(episodes(2, 4, 100, 1), NO_CRITIC)
    assert targets.metrics["risk/cap"] == 3  # the median of 1, 2, 4 and 100
    assert targets.metrics["risk/cvar"] == 1.5
    assert targets.metrics["risk/mean"] == 26.75
    # Twice min(G, 3), since alpha is a half.
    torch.testing.assert_close(targets.returns[::3, 0], torch.tensor([4.0, 6.0, 6.0, 2.0]))


def test_an_episode_goes_on_in_the_next_rollout_and_after_a_resume():
    whole, parts = risk(alpha=0.5, window=4), risk(alpha=0.5, window=4)
    rewards = [1.0, 1.0, -4.0, 2.0, 2.0, 2.0]
    expected = whole.estimate(one_row(rewards, terminated=[False] * 2 + [True] + [False] * 2 + [True]), NO_CRITIC)
    parts.estimate(one_row(rewards[:2]), NO_CRITIC)
    resumed = risk(alpha=0.5, window=4)
    resumed.check_state(Saved(parts.state()))
    resumed.load_state(parts.state())
    resumed.estimate(one_row(rewards[2:4], terminated=[True, False]), NO_CRITIC)
    last = resumed.estimate(one_row(rewards[4:], terminated=[False, True]), NO_CRITIC)
    assert last.metrics["risk/cvar"] == expected.metrics["risk/cvar"] == -2  # episodes of -2 and 6


@pytest.mark.parametrize(
    ("name", "value"),
    [("recent", torch.zeros(2, 2)), ("recent", torch.full((2,), math.nan).double()), ("dual", -1.0), ("updates", "1")],
)
def test_states_that_no_run_has_are_refused(name: str, value: object):
    with pytest.raises(CheckpointError, match=name):
        risk().check_state(Saved(risk().state() | {name: value}))


def test_a_time_limit_ends_the_episode():
    """The return of an episode is what counts: nothing comes after its end."""
    limited = one_row([1.0, 1.0], truncated=[False, True], final_value=[0.0, 50.0])
    targets = risk(beta=0.0).estimate(limited, NO_CRITIC)
    torch.testing.assert_close(targets.returns[:, 0], torch.tensor([2.0, 1.0]))


def test_steps_that_are_not_valid_belong_to_no_episode():
    rollout = replace(episodes(3, 6), valid=torch.tensor([True] * 3 + [False] * 3).unsqueeze(1))
    assert risk().estimate(rollout, NO_CRITIC).metrics["risk/mean"] == 3


def test_the_dual_variable_rises_with_the_violation_and_falls_without():
    estimator = risk(alpha=0.5, limit=-1.0, window=4, dual_rate=0.1, dual_damping=0.5)
    bad, good = episodes(-8, -4, 0, 4), episodes(0, 1, 2, 3)
    weights = [estimator.estimate(rollout, NO_CRITIC).metrics["risk/beta"] for rollout in (bad, bad, bad, good)]
    assert 0 < weights[0] < weights[1] < weights[2] < 1
    assert weights[3] < weights[0]
    for _ in range(50):
        last = estimator.estimate(good, NO_CRITIC).metrics["risk/beta"]
    assert last == 0  # a constraint that holds costs nothing


def test_alpha_falls_from_1_during_the_warm_up():
    estimator = risk(alpha=0.2, warmup=4)
    alphas = [estimator.estimate(episodes(1, 2, 3), NO_CRITIC).metrics["risk/alpha"] for _ in range(6)]
    assert alphas == pytest.approx([1.0, 0.8, 0.6, 0.4, 0.2, 0.2])


def test_what_the_objective_cannot_mean_is_refused():
    with pytest.raises(ConfigError, match=r"ppo\.gamma: must be 1"):
        Risk(Risk.Settings(kind="risk"), PPOConfig(gamma=0.99))
    ppo = PPOConfig(gamma=1.0, estimator={"kind": "risk"})  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"normalize\.reward: set it to false"):
        Scorer(ppo, RewardScaler(1, 1.0, 10.0))
