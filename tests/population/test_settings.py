"""The section `population`: defaults, errors that name the key, and the configs of members."""

from typing import Any

import pytest

from surefoot.errors import ConfigError
from surefoot.population.settings import build_plan, split_population

LR = {"optimizer.lr": {"low": 1e-4, "high": 1e-2, "scale": "log"}}


def raw(**population: Any) -> dict[str, Any]:
    return {"env": {"id": "CartPole-v1"}, "population": {"tunables": LR, **population}}


def problem(given: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as caught:
        build_plan(given)
    return str(caught.value)


@pytest.mark.parametrize(
    ("population", "told"),
    [
        ({"memebrs": 4}, "population.memebrs: unknown key; did you mean 'members'?"),
        ({"members": 1}, "population.members: input should be greater than or equal to 2"),
        ({"tunables": {}}, "population.tunables: name at least one setting"),
        (
            {"tunables": {"optimizer.lr": {"loww": 1}}},
            "population.tunables.optimizer.lr.loww: unknown key; did you mean 'low'?",
        ),
        ({"tunables": {"optimizer.lr": {"low": 1, "high": 0.1}}}, "low must be below high"),
        (
            {"tunables": {"optimizer.rl": LR["optimizer.lr"]}},
            "optimizer.rl: unknown setting; did you mean 'optimizer.lr'?",
        ),
        ({"tunables": {"policy.hidden": {"choices": [8, 16]}}}, "policy.hidden: is not a single number"),
        (
            {"tunables": {"policy.activation": {"choices": ["relu", "elu"]}}},
            "policy.activation: cannot change on resume",
        ),
        ({"tunables": {"normalize.obs_clip": {"low": 1, "high": 2}}}, "normalize.obs_clip: cannot change on resume"),
        ({"tunables": {"train.seed": {"low": 1, "high": 2, "integer": True}}}, "train.seed: cannot change on resume"),
        ({"tunables": {"train.steps": {"low": 1, "high": 2}}}, "train.steps: cannot change; all members train"),
        ({"tunables": {"ppo.gamma": {"low": 0.5, "high": 1.5}}}, "ppo.gamma: ppo.gamma: input should be less than"),
        ({"tunables": {"ppo.batch_size": {"choices": [64, 60]}}}, "ppo.batch_size: 60 does not divide the rollout"),
        ({"values": {"ppo.clip": [0.1] * 8}}, "population.values.ppo.clip: not a tunable"),
        (
            {"values": {"optimizer.lr": [1e-3]}},
            "population.values.optimizer.lr: needs 8 values, one per member (got 1)",
        ),
        ({"values": {"optimizer.lr": [-1.0] * 8}}, "population.values.optimizer.lr: optimizer.lr: input should be"),
        (
            {"start": "config", "tunables": {"ppo.epochs": {"choices": [3, 4]}}},
            "ppo.epochs starts with 10, which is not one of its values",
        ),
    ],
)
def test_what_is_wrong_is_named(population, told):
    assert told in problem(raw(**population))


def test_problems_of_all_sections_are_told_at_once():
    given = raw(truncation=0.9) | {"ppo": {"clipp": 1}}
    told = problem(given)
    assert "population.truncation" in told
    assert "ppo.clipp: unknown key" in told


def test_members_have_their_own_seed_and_values():
    plan = build_plan(raw(objective="cvar") | {"train": {"seed": 10, "steps": 1000, "eval_episodes": 5}})
    config = plan.member_config(3, {"optimizer.lr": 2e-3})
    assert config.train.seed == 13
    assert config.optimizer.lr == 2e-3
    assert config.train.best_metric == "cvar"
    assert (config.train.eval_episodes, config.log.console, config.train.threads) == (0, "off", 1)


def test_a_plan_is_read_back_from_its_plain_form():
    plan = build_plan(raw(values={"optimizer.lr": [1e-3] * 8}))
    assert build_plan(plan.to_json()) == plan


def test_settings_of_the_command_line():
    own, rest = split_population(
        {"population.members": "4", "population.tunables.ppo.clip": {"low": 0.1, "high": 0.2}, "ppo.gamma": "0.9"}
    )
    assert own == {"members": "4", "tunables": {"ppo.clip": {"low": 0.1, "high": 0.2}}}
    assert rest == {"ppo.gamma": "0.9"}
