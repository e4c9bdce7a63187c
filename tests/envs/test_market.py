"""Market pays the position times the next return less its costs, and nothing of the future is seen."""

import math

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from surefoot.envs import native
from surefoot.envs.make import make_vec_env
from surefoot.envs.protocol import slot_for
from surefoot.envs.tasks.market import Market
from surefoot.envs.tasks.market_answers import Component, mixture_tail, student_t_quantile, student_t_tail_factor
from surefoot.envs.tasks.registration import register_envs
from surefoot.errors import EnvError
from surefoot.settings.config import EnvConfig
from surefoot.settings.layers import build_config

INVESTOR = {
    **{"process": "student_t", "degrees": 5, "drift": 0.5, "volatility": 0.5, "exposure_cost": 0.5},
    **{"turnover_cost": 0, "horizon": 1, "window": 0, "low": 0, "high": 2, "bankrupt_below": -1e6},
}
"""The one-step investor of docs/market.md."""


@pytest.fixture(scope="module", autouse=True)
def _own_tasks() -> None:
    register_envs()


def hold(env, position):
    return env.step(np.array([position], np.float32))


def drawn(count: int, **kwargs) -> np.ndarray:
    """Returns as the native env pays them to who always holds 1, `[envs, steps]`."""
    envs = native.make("Market-v0", count, low=0, turnover_cost=0, bankrupt_below=-1e6, **kwargs)
    envs.reset(seed=7)
    return np.array([envs.step(np.ones((count, 1), np.float32))[1] for _ in range(kwargs.get("horizon", 128))]).T


@pytest.mark.filterwarnings("ignore:.*infinity. This is probably too")
def test_is_a_proper_env():
    check_env(Market(), skip_render_check=True)


def test_costs_and_flags_by_hand():
    """Returns 0.5 | -0.25, 0.125, 0.75; costs 1/8 |change| + 1/4 change^2 / 2 + 1/2 position^2 / 2."""
    costs = {"turnover_cost": 0.125, "impact_cost": 0.25, "exposure_cost": 0.5, "bankrupt_below": -9}
    env = Market(horizon=3, window=1, returns=[0.5, -0.25, 0.125, 0.75], **costs)
    obs, _ = env.reset(seed=1)
    assert obs.tolist() == [0.5, 0.0, 0.0, 1.0]
    obs, reward, *ends, info = hold(env, 1.0)
    assert reward == -0.25 - (0.125 + 0.125 + 0.25)
    assert (obs.tolist(), ends) == ([-0.25, 1.0, -0.75, np.float32(2 / 3)], [False, False])
    assert info == {"win": False, "turnover": 1.0, "bankrupt": False, "max_drawdown": 0.75, "position": 1.0}
    obs, reward, *ends, _ = hold(env, -0.5)
    assert reward == -0.0625 - (0.125 * 1.5 + 0.125 * 1.5**2 + 0.25 * 0.25)
    _, reward, *ends, info = hold(env, 7.0)  # clipped to 1
    assert reward == 0.75 - (0.125 * 1.5 + 0.125 * 1.5**2 + 0.25)
    assert ends == [False, True], "the end of the horizon truncates"
    assert info["turnover"] == 1.5


@pytest.mark.parametrize("penalty", [0.0, 2.0])
def test_a_bankruptcy_terminates_and_costs(penalty):
    env = Market(2, 0, turnover_cost=0, bankrupt_below=0.5, bankrupt_penalty=penalty, returns=[0.25, -0.875])
    env.reset(seed=1)
    assert hold(env, 1.0)[1:4] == (0.25, False, False)
    _, reward, *ends, info = hold(env, 1.0)
    assert (reward, ends) == (-0.875 - penalty, [True, False]), "also in the last step of the horizon"
    assert info == {"win": False, "turnover": 0.0, "bankrupt": True, "max_drawdown": 0.875, "position": 1.0}


def test_a_win_counts_the_penalty():
    env = Market(1, 0, turnover_cost=0, bankrupt_below=1.0, returns=[-0.5])
    env.reset()
    assert hold(env, -1.0)[4]["win"]
    poor = Market(1, 0, turnover_cost=1.0, bankrupt_below=0.9, bankrupt_penalty=1.0, returns=[-0.5])
    poor.reset()
    assert not hold(poor, -1.0)[4]["win"]


def test_both_engines_report_the_same_metrics():
    kwargs = {"volatility": 0.2, "horizon": 20, "bankrupt_below": 0.4, "bankrupt_penalty": 1.0}
    seen = []
    for engine in ("native", "local"):
        config = build_config({"env": {"id": "Market-v0", "kwargs": kwargs}, "rollout.engine": engine})
        env = make_vec_env("Market-v0", config.env, 8, 3, config.rollout)
        assert dict(env.metrics) == Market.metrics
        slot, steps = slot_for(env), []
        env.reset(slot)
        for _ in range(40):
            env.send(0, np.ones((8, 1), np.float32))
            env.receive(0, slot)
            steps.append(slot.metrics.copy())
        env.close()
        seen.append(np.array(steps))
    assert np.array_equal(*seen)
    assert seen[0].any((0, 1)).all(), "bankruptcies too"


def test_normal_returns():
    returns = drawn(2000, drift=0.01, volatility=0.1).ravel()
    assert returns.mean() == pytest.approx(0.01, abs=4 * 0.1 / math.sqrt(returns.size))
    assert returns.std() == pytest.approx(0.1, rel=0.01)
    assert ((returns - 0.01) ** 4).mean() / 0.1**4 == pytest.approx(3.0, abs=0.1)


def test_student_t_returns_have_unit_variance_and_fat_tails():
    noise = drawn(2000, process="student_t", degrees=5, drift=0, volatility=1).ravel()
    assert noise.mean() == pytest.approx(0.0, abs=4 / math.sqrt(noise.size))
    assert noise.std() == pytest.approx(1.0, rel=0.02)
    worst = np.sort(noise)[: noise.size // 20]
    assert worst[-1] == pytest.approx(student_t_quantile(0.05, 5) * math.sqrt(3 / 5), rel=0.01)
    assert -worst.mean() == pytest.approx(student_t_tail_factor(0.05, 5), rel=0.02)


def test_jumps_are_a_mixture_of_normals():
    returns = np.sort(drawn(2000, process="jump").ravel())
    mixture = [Component(0.98, 0.0005, 0.01), Component(0.02, -0.0595, math.hypot(0.01, 0.03))]
    var, cvar = mixture_tail(mixture, 0.05)
    worst = returns[: returns.size // 20]
    assert returns.mean() == pytest.approx(0.0005 - 0.02 * 0.06, abs=4 * 0.014 / math.sqrt(returns.size))
    assert (worst[-1], worst.mean()) == pytest.approx((var, cvar), rel=0.01)


def test_regimes_switch_as_their_probabilities_say():
    kwargs = {"stress_begins": 0.05, "stress_ends": 0.2, "stress_drift": -1, "stress_volatility": 0, "volatility": 0}
    is_stress = drawn(2000, drift=1, window=3, **kwargs) < 0
    shares = is_stress.mean(0)
    assert shares[0] == pytest.approx(0.2, abs=0.03), "an episode begins in the stationary distribution"
    assert shares.mean() == pytest.approx(0.2, abs=0.01)
    before, after = is_stress[:, :-1], is_stress[:, 1:]
    assert after[~before].mean() == pytest.approx(0.05, abs=0.004)
    assert after[before].mean() == pytest.approx(0.8, abs=0.01)


@pytest.mark.parametrize("exposure", [0.5, 1.0])
def test_the_one_step_investor_is_made_of_options(exposure):
    envs, rewards = native.make("Market-v0", 1000, **INVESTOR), []
    obs, _ = envs.reset(seed=2)
    for _ in range(100):
        assert obs[0].tolist() == [0.0, 0.0, 1.0]
        obs, reward, terminated, truncated, _ = envs.step(np.full((1000, 1), exposure, np.float32))
        assert truncated.all()
        assert not terminated.any()
        rewards.append(reward)
    ordered = np.sort(np.ravel(rewards))
    mean, cost, factor = 0.5 * exposure, 0.25 * exposure**2, student_t_tail_factor(0.1, 5)
    assert ordered.mean() == pytest.approx(mean - cost, abs=4 * 0.5 * exposure / math.sqrt(ordered.size))
    assert ordered[: ordered.size // 10].mean() == pytest.approx(mean - 0.5 * factor * exposure - cost, rel=0.03)


@pytest.mark.parametrize(
    ("kwargs", "said"),
    [
        ({"process": "levy"}, "process must be normal, student_t or jump, not 'levy'"),
        ({"process": "student_t", "degrees": 2}, "degrees must be a number from 2.1 to 1000, not 2"),
        ({"degrees": 5}, "degrees has no effect with process 'normal'; set process to student_t or remove degrees"),
        ({"stress_drift": 0.1}, "stress_drift has no effect without regimes; set stress_begins above 0 or remove"),
        ({"horizon": 0}, "horizon must be a whole number from 1 to 4096, not 0"),
        ({"window": 2.5}, "window must be a whole number from 0 to 256, not 2.5"),
        ({"low": 1, "high": 1}, "low must be less than high, not 1 and 1"),
        ({"turnover_cost": -1}, "turnover_cost must be a number from 0 to 1000, not -1"),
        ({"bankrupt_below": 2}, "bankrupt_below must be a number from -1e.06 to 1, not 2"),
        ({"stress_begins": math.nan}, "stress_begins must be a number from 0 to 1, not nan"),
        ({"speed": 1}, "Market-v0 has no option 'speed'; docs/market.md lists them"),
        ({"start": "first"}, "start has no effect without prices; set prices to a CSV file or remove start"),
        ({"returns": [0.0] * 135}, "there are 135 recorded returns, but window . horizon = 136 are needed"),
        ({"returns": [math.inf] * 200}, "returns must be a number from -1e.06 to 1e.06, not inf"),
        ({"returns": []}, "there are 0 recorded returns"),
        ({"returns": 3}, "returns must be a list of numbers, not 3"),
        ({"returns": [0.0] * 200, "drift": 0.1}, "drift has no effect on recorded returns; remove it"),
        ({"returns": [0.0] * 200, "prices": "a.csv"}, "prices and returns cannot both be given"),
        ({"returns": [0.0] * 200, "start": "last"}, "start must be random or first, not 'last'"),
    ],
)
def test_a_user_reads_what_to_change_whatever_the_engine(kwargs, said):
    with pytest.raises(EnvError, match=f"'Market-v0' could not be created: {said}"):
        make_vec_env("Market-v0", EnvConfig(id="Market-v0", kwargs=kwargs), 2, 1)


def test_is_saved_in_the_middle_of_an_episode():
    env, other = Market(stress_begins=0.1), Market(stress_begins=0.1)
    env.reset(seed=1)
    other.reset(seed=2)
    for step in range(20):
        hold(env, step % 3 - 1)
    other.load_state(env.save_state())
    for step in range(108):
        result, expected = hold(other, step % 2), hold(env, step % 2)
        np.testing.assert_array_equal(result[0], expected[0])
        assert result[1:] == expected[1:]
    assert result[3]
