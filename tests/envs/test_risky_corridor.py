"""The risky way has the better mean, the safe one the better tail: as the closed forms say, and as PPO finds."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from surefoot import PPO
from surefoot.envs import native
from surefoot.envs.tasks.registration import register_envs
from surefoot.envs.tasks.risky_corridor import TOWARD_RISKY, TOWARD_SAFE, RiskyCorridor, Way

OTHER = {"risky_length": 3, "safe_length": 5, "risky_gain": 4, "loss": 6, "loss_probability": 0.2, "step_cost": 0.25}


@pytest.fixture(scope="module", autouse=True)
def _own_tasks() -> None:
    register_envs()


def test_is_a_proper_env():
    check_env(RiskyCorridor(), skip_render_check=True)


@pytest.mark.parametrize("alpha", [0.05, 0.1])
def test_mean_and_tail_disagree(alpha):
    risky, safe = RiskyCorridor().ways()
    assert (risky.mean, safe.mean) == pytest.approx((2.28, 1.6))
    assert risky.cvar(alpha) == pytest.approx({0.05: -7.6, 0.1: -2.4}[alpha])
    assert safe.cvar(alpha) == pytest.approx(1.6)


def test_cvar_of_two_returns():
    way = Way(usual=1.0, worse=-10.0, probability=0.2)
    assert way.cvar(0.1) == way.cvar(0.2) == -10.0
    assert way.cvar(0.4) == pytest.approx(-4.5)
    assert way.cvar(1.0) == pytest.approx(way.mean) == pytest.approx(-1.2)


@pytest.mark.parametrize("kwargs", [{}, OTHER])
@pytest.mark.parametrize("direction", [TOWARD_RISKY, TOWARD_SAFE])
def test_the_env_has_the_closed_forms(kwargs, direction):
    rows, episodes = 1000, 50
    envs = native.make("RiskyCorridor-v0", rows, **kwargs)
    envs.reset(seed=5)
    steps = (kwargs.get("risky_length", 2), kwargs.get("safe_length", 4))[direction]
    returns = np.zeros((episodes, rows))
    for episode in returns:
        for _ in range(steps):
            _, reward, terminated, truncated, _ = envs.step(np.full(rows, direction))
            episode += reward
        assert terminated.all()
        assert not truncated.any()
    way, ordered = RiskyCorridor(**kwargs).ways()[direction], np.sort(returns.ravel())
    error = 4 * ordered.std() / np.sqrt(ordered.size)
    assert ordered.mean() == pytest.approx(way.mean, abs=error + 1e-9)
    for alpha in (0.05, 0.1, 0.3):
        worst = ordered[: int(alpha * ordered.size)]
        assert worst.mean() == pytest.approx(way.cvar(alpha), abs=error / alpha + 1e-9)


def test_walks_back_and_forth_until_the_limit():
    env = gym.make("RiskyCorridor-v0")
    obs, _ = env.reset(seed=1)
    assert obs.tolist() == [0, 0, 1, 0, 0, 0, 0]
    for step in range(10):
        obs, reward, terminated, truncated, info = env.step(step % 2)
        assert (reward, terminated, truncated, info) == (-0.1, False, step == 9, {})
        assert obs.argmax() == 1 + step % 2


@pytest.mark.parametrize(("direction", "risky"), [(TOWARD_RISKY, True), (TOWARD_SAFE, False)])
def test_reports_the_way_at_its_end(direction, risky):
    env = RiskyCorridor(loss_probability=0)
    env.reset(seed=1)
    infos, terminated, total = [], False, 0.0
    while not terminated:
        _, reward, terminated, _, info = env.step(direction)
        infos.append(info)
        total += reward
    assert infos[-1] == {"risky": risky}
    assert not any(infos[:-1])
    assert total == pytest.approx(2.8 if risky else 1.6)


@pytest.mark.parametrize(
    ("kwargs", "said"),
    [
        ({"risky_length": 0}, "risky_length must be a whole number from 1 to 8, not 0"),
        ({"safe_length": 9}, "safe_length must be a whole number from 1 to 8, not 9"),
        ({"loss": -1}, "loss must be a number from 0 to 1e.06, not -1"),
        ({"loss_probability": 1.5}, "loss_probability must be a number from 0 to 1, not 1.5"),
        ({"step_cost": "much"}, "step_cost must be a number from 0 to 1e.06, not 'much'"),
    ],
)
def test_options_out_of_range_are_refused(kwargs, said):
    with pytest.raises(gym.error.Error, match=said):
        gym.make("RiskyCorridor-v0", **kwargs)


def test_ppo_takes_the_risky_way():
    agent = PPO("RiskyCorridor-v0", seed=1, eval_episodes=0).learn()
    evaluation = agent.evaluate(20)
    assert evaluation.mean_metric("risky") == 1.0
    assert set(evaluation.lengths) == {2}
