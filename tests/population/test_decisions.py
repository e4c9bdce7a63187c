"""Decisions between rounds: counted randomness, ranking, truncation, and changes inside the ranges."""

import math
from typing import Any

import numpy as np
import pytest

from surefoot.errors import ConfigError
from surefoot.population.decisions import choose, ranked, start_values
from surefoot.population.settings import Plan, build_plan

TUNABLES = {
    "optimizer.lr": {"low": 1e-5, "high": 1e-1, "scale": "log", "factor": 1.2, "resample": 0.0},
    "ppo.gamma": {"low": 0.5, "high": 0.9999, "scale": "one_minus", "factor": 2.0, "resample": 0.0},
    "ppo.epochs": {"low": 1, "high": 20, "integer": True, "factor": 1.2, "resample": 0.0},
    "ppo.advantage_norm": {"choices": ["rollout", "minibatch", "none"], "resample": 0.0},
}
VALUES = {"optimizer.lr": 1e-3, "ppo.gamma": 0.99, "ppo.epochs": 2, "ppo.advantage_norm": "minibatch"}
OTHERS = {"ppo.clip": 0.2, "rollout.num_steps": 64}


def plan_of(members: int = 4, tunables: Any = TUNABLES, config: Any = None, **population: Any) -> Plan:
    return build_plan((config or {}) | {"population": {"members": members, "tunables": tunables, **population}})


def chosen(plan: Plan, scores: list[float | None], number: int = 1, failed: list[bool] | None = None):
    failed = failed or [False] * len(scores)
    values = [{**VALUES, **OTHERS, "ppo.epochs": 2 + member} for member in range(len(scores))]
    return choose(plan, number, values, ranked(scores, failed), failed)


def test_order():
    scores = [-5.0, None, 3.0, 3.0, -math.inf, 9.0]
    assert ranked(scores, [False, False, False, False, False, True]) == [2, 3, 0, 1, 4, 5]


@pytest.mark.parametrize(
    ("members", "truncation", "count"), [(2, 0.25, 1), (3, 0.25, 1), (4, 0.25, 1), (8, 0.25, 2), (5, 0.5, 2)]
)
def test_the_worst_continue_from_the_best(members, truncation, count):
    plan = plan_of(members, truncation=truncation)
    scores = [-float(member) for member in range(members)]  # negative scores rank like others
    parents = [choice.parent for choice in chosen(plan, scores)]
    assert parents[: members - count] == list(range(members - count))
    assert all(parent < count for parent in parents[members - count :])


def test_who_goes_on_keeps_everything():
    choices = chosen(plan_of(), [4.0, 3.0, 2.0, 1.0])
    assert [choices[member].values["ppo.epochs"] for member in range(3)] == [2, 3, 4]


def test_all_that_failed_are_replaced_and_never_copied():
    choices = chosen(plan_of(truncation=0.5), [None, None, None, -1e9], failed=[True, True, True, False])
    assert [choice.parent for choice in choices] == [3, 3, 3, 3]
    assert choices[3].values["ppo.epochs"] == 5


def test_changes_start_from_the_values_of_the_donor():
    plan, seen = plan_of(2), set()
    for number in range(1, 80):
        values = chosen(plan, [1.0, 0.0], number)[1].values
        seen.add(tuple(values.values()))
        assert values["optimizer.lr"] in (1e-3 * 1.2, 1e-3 / 1.2)
        assert 1 - values["ppo.gamma"] == pytest.approx(0.01 * 2) or 1 - values["ppo.gamma"] == pytest.approx(0.005)
        assert values["ppo.epochs"] in (1, 3)
        assert values["ppo.advantage_norm"] in ("rollout", "none")
    assert len(seen) == 16


def test_resampling_has_its_probability():
    tunables = {"optimizer.lr": {**TUNABLES["optimizer.lr"], "resample": 0.25}}
    plan = plan_of(2, tunables)
    values = [chosen(plan, [1.0, 0.0], number)[1].values["optimizer.lr"] for number in range(1, 401)]
    drawn = [value for value in values if value not in (1e-3 * 1.2, 1e-3 / 1.2)]
    assert 70 < len(drawn) < 130
    assert np.mean(np.log10(drawn)) == pytest.approx(-3, abs=0.4)  # uniform on the scale
    assert all(1e-5 <= value <= 1e-1 for value in drawn)


def test_values_stay_in_their_ranges():
    tunables = {"ppo.clip": {"low": 0.19, "high": 0.21, "factor": 1.5, "resample": 0.0}}
    values = [chosen(plan_of(2, tunables), [1.0, 0.0], number) for number in range(1, 9)]
    assert {choices[1].values["ppo.clip"] for choices in values} == {0.19, 0.21}


def test_changes_that_do_not_fit_together_are_drawn_again():
    tunables = {"rollout.num_steps": {"low": 16, "high": 128, "integer": True, "resample": 1.0}}
    config = {"rollout": {"num_envs": 1, "num_steps": 64}, "ppo": {"batch_size": 16}}
    plan = plan_of(2, tunables, config, start="config")
    values = [chosen(plan, [1.0, 0.0], number)[1].values["rollout.num_steps"] for number in range(1, 20)]
    assert all(value % 16 == 0 for value in values)
    assert len(set(values)) > 1


def test_decisions_depend_only_on_seed_round_and_member():
    scores = [4.0, 3.0, 2.0, 1.0]
    assert chosen(plan_of(), scores) == chosen(plan_of(), scores)
    drawn = {"optimizer.lr": {**TUNABLES["optimizer.lr"], "resample": 1.0}}
    assert chosen(plan_of(4, drawn), scores) != chosen(plan_of(4, drawn, seed=1), scores)
    assert chosen(plan_of(4, drawn), scores, 1) != chosen(plan_of(4, drawn), scores, 2)


def test_start_values():
    plan = plan_of(4)
    drawn = [start_values(plan, member) for member in range(4)]
    assert drawn == [start_values(plan, member) for member in range(4)]
    assert len({values["optimizer.lr"] for values in drawn}) == 4
    given = plan_of(2, start="config", values={"optimizer.lr": [1e-2, 1e-4]})
    assert [start_values(given, member)["optimizer.lr"] for member in range(2)] == [1e-2, 1e-4]
    assert start_values(given, 0)["ppo.gamma"] == 0.99


def test_start_values_that_never_fit_are_told():
    tunables = {"ppo.batch_size": {"low": 64, "high": 128, "integer": True}}
    config = {"rollout": {"num_envs": 1, "num_steps": 128}}
    with pytest.raises(ConfigError, match=r"ppo\.batch_size: \d+ does not divide the rollout of 128"):
        [start_values(plan_of(2, tunables, config, seed=seed), 0) for seed in range(20)]
