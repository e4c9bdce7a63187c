"""Nonsense handed to native envs and to the core's functions: an error that says what to pass, and nothing changes."""

from typing import Any

import numpy as np
import pytest

from surefoot.envs import native
from surefoot.envs.make import make_vec_env
from surefoot.envs.protocol import new_slot, step_all
from surefoot.errors import EnvError, NativeError, SurefootError
from surefoot.native import core
from surefoot.settings.config import EnvConfig, RolloutConfig

RAGGED = [[0.0], [0.0, 1.0]]
HUGE = 10**9


@pytest.mark.parametrize("num_envs", [True, 0, -1, 1.0, 1e9, None, "2", HUGE, 10**30])
def test_numbers_of_envs(num_envs: Any) -> None:
    with pytest.raises(SurefootError, match="num_envs"):
        native.make("CartPole-v1", num_envs)


@pytest.mark.parametrize(
    "arguments", [{"threads": -1}, {"threads": 1.5}, {"threads": True}, {"max_episode_steps": 0.5}]
)
def test_other_numbers(arguments: dict[str, Any]) -> None:
    with pytest.raises(SurefootError, match=f"{next(iter(arguments))} must be a whole number of at least"):
        native.make("CartPole-v1", 2, **arguments)


@pytest.mark.parametrize(
    "actions",
    [
        None,
        "left",
        RAGGED,
        [0],
        [0, 1, 0],
        [[0], [1]],
        [0.5, 1.0],
        [0, 2],
        [0, -1],
        [0, np.nan],
        [0, 2**70],
        [0j, 1j],
        [None, 1],
        {},
    ],
)
def test_choices(actions: Any) -> None:
    envs = native.make("CartPole-v1", 2)
    envs.reset(seed=1)
    before = envs.save_state()
    with pytest.raises(SurefootError, match="actions must be in"):
        envs.step(actions)
    assert np.array_equal(envs.save_state(), before)


@pytest.mark.parametrize(
    "actions",
    [
        None,
        "left",
        RAGGED,
        [0.0, 0.0],
        [[np.nan], [0.0]],
        [[np.inf], [0.0]],
        [[1e300], [0.0]],
        np.zeros((2, 1), object),
    ],
)
def test_boxes(actions: Any) -> None:
    envs = native.make("Pendulum-v1", 2)
    envs.reset(seed=1)
    before = envs.save_state()
    with pytest.raises(SurefootError, match="actions must be in"):
        envs.step(actions)
    assert np.array_equal(envs.save_state(), before)
    envs.step([[5], [-5]])  # beyond the bounds, and whole: as Gymnasium's env takes them


@pytest.mark.parametrize(
    "seed", [1.5, -1, True, "12", [1], [1, -2], [1, 2.0], [True, False], {1: 2, 2: 3}, np.float64(3), [None, 1]]
)
def test_seeds(seed: Any) -> None:
    with pytest.raises(SurefootError, match="seed must be a whole number of at least 0, or one for each of the 2 envs"):
        native.make("CartPole-v1", 2).reset(seed=seed)


def test_seeds_of_every_size() -> None:
    envs = native.make("CartPole-v1", 2)
    for seed in (np.int64(2**63 - 1), 2**100, np.array([1, 2]), (3, 4)):
        envs.reset(seed=seed)


def test_states() -> None:
    envs = native.make("CartPole-v1", 2)
    envs.reset(seed=1)
    state = envs.save_state()
    for other in (
        None,
        "state",
        RAGGED,
        state.tolist(),
        state.view(np.int64),
        np.zeros_like(state, np.float32),
        state[:1],
        state.T,
    ):
        with pytest.raises(SurefootError, match=r"float64 array that save_state returned|state must have shape"):
            envs.load_state(other)
        assert np.array_equal(envs.save_state(), state, equal_nan=True)
    envs.load_state(np.asfortranarray(state))


def test_actions_of_a_policy_that_are_not_finite() -> None:
    env = make_vec_env("Pendulum-v1", EnvConfig(), 2, 1, RolloutConfig(engine="native"))
    slot = new_slot(env.num_rows, env.obs_spec, env.mask_size)
    env.reset(slot)
    with pytest.raises(EnvError, match="rejected their actions: the action of row 1 is not finite"):
        step_all(env, np.array([[0.0], [np.nan]], np.float32), slot)


def test_more_than_fits_is_refused_by_the_core_itself() -> None:
    with pytest.raises(ValueError, match="num_envs must be from 1 to"):
        core().Engine("CartPole-v1", {}, HUGE, 1, 0)
    for make in (lambda: core().Engine("CartPole-v1", {}, 1, HUGE, 0), lambda: core().Threads(HUGE)):
        with pytest.raises(ValueError, match="must be from 1 to 65536"):
            make()
    for rows, count in ((2**62, 4), (2**40, 1), (2**32, 2**32)):
        with pytest.raises(ValueError, match=r"more than 2\^30 numbers"):
            core().uniforms(1, 2, 3, rows, count)
    plan: dict[str, Any] = {
        "obs": [{"key": "", "size": 4, "normalizer": "", "clip": 1.0}],
        "activation": "tanh",
        "shares_trunk": True,
        "actor": {"encoders": [{"obs": 0, "encoder": {"kind": "identity"}}], "trunk": []},
        "head": {"kind": "bernoulli", "layer": "head", "size": 1e12},
        "values": [{"critic": {"kind": "scalar", "layer": "value", "returns": ""}, "trunk": []}],
    }
    with pytest.raises(ValueError, match=r"head\.size must be at most 1048576"):
        core().Policy(plan)


def test_a_policy_of_other_choices_is_refused() -> None:
    engine = core().Engine("CartPole-v1", {}, 1, 1, 0)
    head = {"kind": "categorical", "layer": "head", "sizes": [3.0], "start": [0.0]}
    plan: dict[str, Any] = {
        "obs": [{"key": "", "size": 4, "normalizer": "", "clip": 1.0}],
        "activation": "tanh",
        "shares_trunk": True,
        "actor": {"encoders": [{"obs": 0, "encoder": {"kind": "identity"}}], "trunk": []},
        "values": [{"critic": {"kind": "scalar", "layer": "value", "returns": ""}, "trunk": []}],
    }
    steps = {name: [np.zeros((1, 1, 1), np.float32)] for name in ("log_prob", "value", "reward", "final_value")}
    flags = {name: [np.zeros((1, 1, 1), bool)] for name in ("terminated", "truncated", "valid")}
    fields = (
        steps
        | flags
        | {
            "obs": [np.zeros((2, 1, 4), np.float32)],
            "episode_start": [np.zeros((2, 1, 1), bool)],
            "last_value": [np.zeros(1, np.float32)],
            "running_reward": [np.zeros(1)],
            "running_length": [np.zeros(1, np.int64)],
            "action": [np.zeros((1, 1, 1), np.int64)],
        }
    )
    for other in (head, head | {"sizes": [2.0], "start": [1.0]}):
        policy = core().Policy(plan | {"head": other})
        with pytest.raises(ValueError, match="its numbers of choices differ from those of the environment"):
            engine.collect(policy, fields, 1, 0, 0, 1)
    policy = core().Policy(plan | {"head": head | {"sizes": [2.0], "start": [0.0]}})
    both = [np.array([2]), np.array([0])]
    for changes, others, problem in (
        ({"reward": ["x"]}, [], "reward must have at least one step"),
        ({"reward": [np.zeros((1, 1), np.float32)]}, [], r"reward must have shape \[1, 1, 1\], not \[1, 1\]"),
        ({"obs": []}, [], "obs must be 1 arrays, not 0"),
        ({"acting": both[:1], "wanted": both[1:]}, [], "must be 0 or the number of one of the others"),
        ({"acting": both[1:]}, [], "wanted is missing"),
        ({}, [(0, policy, [], False)], "no weights yet"),
    ):
        with pytest.raises(ValueError, match=problem):
            engine.collect(policy, fields | changes, 1, 0, 0, 1, others)


def test_a_model_that_is_not_xml_is_refused_in_one_line(tmp_path):
    (tmp_path / "ant.xml").write_text("root:x:0:0\n")
    with pytest.raises(NativeError, match=r"^cannot load .*ant.xml: XML parse error .*Line number=1$"):
        native.make("Ant-v5", xml_file=str(tmp_path / "ant.xml"))
