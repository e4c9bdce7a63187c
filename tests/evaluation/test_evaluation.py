"""Figures of an evaluation: risk, wins, and names of metrics."""

import logging
import math

import pytest

from surefoot.errors import ConfigError
from surefoot.evaluation.evaluation import Evaluation

TWENTY = Evaluation(tuple(float(number) for number in range(20, 0, -1)), (1,) * 20)


def test_risk_of_twenty_episodes(caplog):
    assert TWENTY.cvar() == 1.0
    assert TWENTY.cvar(0.1) == 1.5
    assert TWENTY.cvar(0.125) == pytest.approx((1 + 2 + 0.5 * 3) / 2.5)
    assert (TWENTY.worst_reward, TWENTY.worst_episode) == (1.0, 19)
    assert TWENTY.quantile(0.5) == 10.5
    assert TWENTY.sharpe == pytest.approx(TWENTY.mean_reward / TWENTY.std_reward)
    assert TWENTY.win_rate is None, "rewards above 0 are not wins"
    assert TWENTY.risk(0.1).cvar.value == TWENTY.cvar(0.1)
    assert TWENTY.risk().mean[1:] == TWENTY.interval()
    assert caplog.text == ""


@pytest.mark.parametrize("ask", [Evaluation.cvar, Evaluation.risk, Evaluation.to_json])
def test_one_warning_that_says_how_many_episodes_are_needed(caplog, ask):
    ask(TWENTY, 0.04)
    assert caplog.record_tuples == [
        (
            *("surefoot", logging.WARNING),
            "the CVaR of the worst 4% of 20 episodes is the worst episode; evaluate at least 25 episodes",
        )
    ]


@pytest.mark.parametrize("ask", [Evaluation.cvar, Evaluation.risk, Evaluation.to_json])
def test_a_share_that_is_none_is_refused(ask):
    with pytest.raises(ConfigError, match=r"alpha: must be above 0 and at most 1.*\(got 1\.5\)"):
        ask(TWENTY, 1.5)
    with pytest.raises(ConfigError, match=r"quantile: must be between 0 and 1 \(got 5\)"):
        TWENTY.quantile(5)


@pytest.mark.parametrize(
    ("metrics", "rate"),
    [
        ({"win": (1.0, 0.0, math.nan)}, 0.5),
        ({"success": (1.0, 1.0, 0.0), "pace": (9.0, 9.0, 9.0)}, pytest.approx(2 / 3)),
        ({"is_success": (0.0, 0.0, 0.0)}, 0.0),
        ({"success": (0.0, 0.0, 0.0), "win": (1.0, 1.0, 1.0)}, 1.0),
        ({"win": (0.5, 1.0, 0.0)}, 0.5),
        ({"win": (3.0, 1.0, 0.0)}, None),
        ({"win": (math.nan,) * 3}, None),
        ({"won": (1.0, 1.0, 1.0)}, None),
    ],
)
def test_wins_are_those_that_the_env_reports(metrics, rate):
    evaluation = Evaluation((5.0, 6.0, 7.0), (1, 1, 1), metrics)
    assert evaluation.win_rate == rate
    assert evaluation.summary().get("eval/win_rate") == rate
    found = evaluation.risk(0.5).win_rate
    assert (found and found.value) == rate


def test_one_episode_has_no_ratio():
    one = Evaluation((5.0,), (3,))
    assert one.sharpe is None
    assert "eval/sharpe" not in one.summary()
    assert one.to_json(1.0)["risk"]["sharpe"] is None


def test_the_description_of_one_episode_has_no_interval():
    assert Evaluation((5.0,), (3,)).description == "5.0 in 1 episode, length 3"
    assert Evaluation((5.0, 5.0), (3, 3)).description.startswith("5.0 ± 0.0 over 2 episodes (95% interval")


def test_a_metric_of_the_env_keeps_its_name():
    assert Evaluation((5.0, 6.0), (1, 1), {"cvar": (1.0, 3.0)}).summary()["eval/cvar"] == 2.0
