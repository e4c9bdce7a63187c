"""Parameters into envs: what may be set, who is told, and that all of it is set or nothing."""

from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from surefoot.envs.adapters.gymnasium_envs import GymnasiumEnvs
from surefoot.envs.adapters.pettingzoo_parallel import PettingZooEnvs
from surefoot.envs.protocol.parameters import declared_parameters
from surefoot.errors import EnvError
from tests.envs.measured import MeasuredEnv, MeasuredTeam
from tests.envs.tasks import CounterEnv, factories
from tests.envs.teams import TEAM


def made(count: int = 3) -> tuple[GymnasiumEnvs, list[MeasuredEnv]]:
    envs = [MeasuredEnv(index=index) for index in range(count)]
    return GymnasiumEnvs([partial(lambda env: env, env) for env in envs], seed=3), envs


def test_defaults_have_the_shape_of_a_value():
    vec, _ = made()
    assert {name: value.tolist() for name, value in vec.parameters.items()} == {"wind": 0.5, "slope": [0.0, 1.0]}
    assert vec.parameters["wind"].shape == ()
    assert vec.parameter_values == {}


def test_a_number_for_all_rows_one_each_and_an_array_for_all():
    vec, envs = made()
    vec.set_parameters({"wind": 2, "slope": torch.tensor([3.0, 4.0])})
    assert [env.given[0]["wind"] for env in envs] == [2.0, 2.0, 2.0]
    assert all(type(env.given[0]["wind"]) is float for env in envs)
    assert [env.given[0]["slope"].tolist() for env in envs] == [[3, 4]] * 3
    vec.set_parameters({"wind": [1, 2, 3]})
    assert vec.parameter_values["wind"].tolist() == [1, 2, 3]
    assert vec.parameter_values["slope"].tolist() == [3, 4]


def test_only_changes_are_passed_to_the_envs_that_they_concern():
    vec, envs = made()
    vec.set_parameters({"wind": 2, "slope": [3, 4]})
    vec.set_parameters({"wind": [2, 7, 2], "slope": [3, 4]})
    assert [env.given[1:] for env in envs] == [[], [{"wind": 7.0}], []]
    vec.set_parameters({"slope": [5, 4]})
    assert [len(env.given) for env in envs] == [2, 3, 2]


def test_envs_get_arrays_that_are_theirs():
    vec, envs = made()
    vec.set_parameters({"slope": (given := np.array([3.0, 4.0]))})
    given[0] = envs[0].given[0]["slope"][1] = 99
    assert envs[1].given[0]["slope"].tolist() == [3, 4]
    assert vec.parameter_values["slope"].tolist() == [3, 4]


WRONG: dict[str, tuple[Any, str]] = {
    "unknown": ({"wind": 1, "rain": 2}, "unknown parameter 'rain'; these envs have wind, slope"),
    "rows": ({"slope": [1, 2], "wind": [1, 2]}, r"'wind' takes one number, or one per row \(3\); got shape \(2,\)"),
    "shape": (
        {"wind": 1, "slope": [1, 2, 3]},
        r"'slope' takes one array of shape \(2,\) for all rows, got shape \(3,\)",
    ),
    "number": ({"wind": 1, "slope": 1}, r"'slope' takes one array of shape \(2,\)"),
    "nan": ({"slope": [1, 2], "wind": [1, np.nan, 2]}, "the value of the parameter 'wind' must not be NaN"),
    "text": ({"slope": [1, 2], "wind": "strong"}, "the parameter 'wind' must be a number or an array of numbers"),
    "no dict": ([1, 2], "takes a dict from names to values"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_what_is_wrong_is_named_and_nothing_is_set(kind):
    given, message = WRONG[kind]
    vec, envs = made()
    with pytest.raises(EnvError, match=message):
        vec.set_parameters(given)
    assert [env.given for env in envs] == [[], [], []]
    assert vec.parameter_values == {}


def test_an_env_that_raises_is_named():
    vec, _ = made()
    with pytest.raises(
        EnvError, match=r"^env 1 \(seed \d+\) raised an exception in set_parameters: ValueError: no wind of 13"
    ):
        vec.set_parameters({"wind": [1, 13, 1]})
    assert vec.parameter_values == {}


def test_agents_of_one_env_must_agree():
    env = PettingZooEnvs([partial(MeasuredTeam, index, TEAM) for index in range(2)], 3)
    with pytest.raises(EnvError, match="'bonus' differs between agents of one env"):
        env.set_parameters({"bonus": [1, 1, 2, 3, 3, 3]})
    env.set_parameters({"bonus": [1, 1, 1, 3, 3, 3]})
    assert [env._attribute(index, "_bonus") for index in (0, 1)] == [1, 3]


def test_an_attribute_of_that_name_without_the_method_is_nobody_s_business():
    class Foreign(CounterEnv):
        parameters = [1, "anything"]

    assert GymnasiumEnvs(factories(1, Foreign), seed=3).parameters == {}


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (None, r"has set_parameters\(\), but no attribute 'parameters'"),
        ({"a b": 1.0}, "declares the parameter 'a b'"),
        ({"wind": "strong"}, "the default of the parameter 'wind' must be a number"),
        ({"wind": np.nan}, "must not be NaN"),
    ],
)
def test_declarations_that_are_refused(declared, message):
    with pytest.raises(EnvError, match=message):
        declared_parameters(declared, "env 4")


def test_saved_values_come_back_and_others_go_to_their_defaults():
    vec, _ = made()
    vec.set_parameters({"wind": [1, 2, 3]})
    state, (other, envs) = vec.save_state(), made()
    other.set_parameters({"slope": [8, 9]})
    other.load_state(state)
    assert [env.given[-1]["wind"] for env in envs] == [1, 2, 3]
    assert [env.given[-1]["slope"].tolist() for env in envs] == [[0, 1]] * 3


def test_saved_values_that_do_not_fit_cost_a_warning(caplog):
    vec, envs = made()
    vec.restore_parameters({"wind": [4.0, 4.0], "slope": [1.0], "rain": 3.0})
    assert [env.given for env in envs] == [[{"wind": 4.0}]] * 3, "the same for all rows fits any number of them"
    assert "a saved parameter was not restored: the parameter 'slope' takes one array of shape (2,)" in caplog.text
    assert "unknown parameter 'rain'" in caplog.text


def test_envs_without_parameters_save_what_they_did_before():
    env = GymnasiumEnvs([lambda: gym.make("CartPole-v1")], seed=3)
    env._reset_env(0, 1)
    state = env.save_state()
    assert state is not None
    assert list(state) == ["envs"]
