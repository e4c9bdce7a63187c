"""Risk figures: what is refused, what is warned about, and numbers worked out by hand."""

import math

import numpy as np
import pytest

from surefoot.errors import ConfigError
from surefoot.statistics.alpha import check_alpha, too_few
from surefoot.statistics.risk import QUANTILES, cvar, risk_of, sharpe


@pytest.mark.parametrize("alpha", [0, -0.1, 1.0001, math.nan, math.inf, "0.1", None, True])
def test_alpha_must_be_a_share(alpha):
    with pytest.raises(ConfigError, match=r"--alpha: must be above 0 and at most 1, such as 0\.05 \(got "):
        check_alpha(alpha, "--alpha")
    with pytest.raises(ConfigError, match="alpha: must be above 0"):
        cvar([1.0, 2.0], alpha)


@pytest.mark.parametrize("weights", [[1, -1], [0, 0], [math.nan, 1]])
def test_weights_must_be_weights(weights):
    with pytest.raises(ConfigError, match="weights: must be at least 0, and not all 0"):
        cvar([1.0, 2.0], 0.5, weights)


def test_the_fraction_of_an_episode_counts():
    """The worst 35% of 10 returns are 3.5 episodes: (0 + 1 + 2 + 3 / 2) / 3.5."""
    assert cvar(range(10), 0.35) == pytest.approx((0 + 1 + 2 + 1.5) / 3.5)
    assert cvar([3.0, 1.0], 0.5, [1, 3]) == 1.0
    assert cvar([3.0, 1.0], 0.8, [1, 3]) == pytest.approx((1 * 3 + 3 * 0.2) / 3.2)


@pytest.mark.parametrize(("count", "alpha", "needed"), [(19, 0.05, 20), (1, 0.3, 4), (48, 1 / 49, 49), (9, 0.101, 10)])
def test_too_few_episodes_for_alpha(count, alpha, needed):
    assert too_few(count, alpha).endswith(f"is the worst episode; evaluate at least {needed} episodes")
    assert too_few(needed, alpha) is None


def test_an_alpha_too_small_for_any_number_of_episodes():
    assert "of 3 episodes is the worst episode" in too_few(3, 5e-324)
    assert cvar([4.0, 3.0], 5e-324) == 3.0


def test_a_ratio_of_equal_returns_has_no_value():
    assert np.isnan(sharpe([0.1] * 3)), "although their computed std is not 0"
    assert np.isnan(sharpe([2.0]))
    assert np.isnan(sharpe([1e-320, 0.0])), "although they are not equal"
    assert sharpe([1.0, 3.0]) == 2.0


def test_figures_of_few_returns():
    risk = risk_of([4.0, 2.0, 0.0, 6.0], alpha=0.375, wins=[1.0, math.nan, 0.0, 1.0])
    assert risk.cvar.value == pytest.approx((0 + 0.5 * 2) / 1.5)
    assert [found.value for found in risk.quantiles.values()] == pytest.approx([0.3, 1.5, 3.0, 4.5, 5.7])
    assert (risk.worst_reward, risk.worst_episode) == (0.0, 2)
    assert risk.sharpe.value == pytest.approx(3 / math.sqrt(5))
    assert risk.win_rate.value == pytest.approx(2 / 3)
    figures = [risk.mean, risk.cvar, risk.sharpe, risk.win_rate, *risk.quantiles.values()]
    assert all(found.low <= found.value <= found.high for found in figures)
    assert risk_of([4.0, 2.0, 0.0, 6.0], alpha=0.375, wins=[1.0, math.nan, 0.0, 1.0]) == risk


def test_intervals_of_equal_returns_are_points():
    risk = risk_of([0.1] * 7)
    assert tuple(risk.cvar) == (0.1, 0.1, 0.1)
    assert [*risk.mean, *(number for found in risk.quantiles.values() for number in found)] == pytest.approx([0.1] * 18)
    assert risk.sharpe is None
    assert risk.win_rate is None
    assert risk_of([5.0], wins=[math.nan]).win_rate is None


def test_intervals_cover_the_truth():
    """The 95% intervals of the median of 40 normal returns hold 0 in about 95% of 40 samples."""
    generator = np.random.default_rng(0)
    found = [risk_of(generator.normal(size=40).tolist()).quantiles[0.5] for _ in range(40)]
    assert sum(low <= 0 <= high for _, low, high in found) >= 34


def test_quantiles_are_those_of_numpy():
    returns = np.random.default_rng(1).normal(size=33).tolist()
    assert [found.value for found in risk_of(returns).quantiles.values()] == np.quantile(returns, QUANTILES).tolist()
