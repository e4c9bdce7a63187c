"""Values that envs hand over and that are not what they should be: each is refused where it enters, by name."""

import re
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv, VectorWrapper

from surefoot.api import PPO
from surefoot.envs.adapters.gymnasium_envs import GymnasiumEnvs
from surefoot.envs.adapters.gymnasium_vector import GymnasiumVectorEnv
from surefoot.envs.adapters.pettingzoo_parallel import PettingZooEnvs
from surefoot.envs.protocol import slot_for
from surefoot.envs.protocol.spaces import array_spec, obs_spec
from surefoot.errors import EnvError
from tests.envs.tasks import CounterEnv, factories, opened
from tests.envs.teams import TeamEnv

BOX = spaces.Box(-1, 1, (2,))
ROWS = 3


# Spaces


@pytest.mark.parametrize(
    ("space", "first", "second"),
    [
        (spaces.Dict({"a/b": BOX, "a": spaces.Dict({"b": BOX})}), "['a']['b']", "['a/b']"),
        (spaces.Dict({1: BOX, "1": BOX}), "[1]", "['1']"),
        (spaces.Dict({"a": spaces.Tuple((BOX, BOX)), "a/0": BOX}), "['a'][0]", "['a/0']"),
        (spaces.Dict({"a.b": BOX, "a/b": BOX}), "['a.b']", "['a/b']"),
    ],
)
def test_keys_that_become_one_when_flattened_are_both_named(space, first, second):
    with pytest.raises(EnvError, match=re.escape(f"the keys {first} and {second} of the observation space")):
        obs_spec(space)


def test_other_keys_are_read_by_what_they_are():
    space = spaces.Dict({1: BOX, "a": spaces.Tuple((BOX, spaces.Discrete(3)))})
    assert list(obs_spec(space)) == ["1", "a/0", "a/1"]


@pytest.mark.parametrize("space", [spaces.Dict({"": BOX}), spaces.Dict({"a": spaces.Dict({"": BOX})})])
def test_empty_keys(space):
    with pytest.raises(EnvError, match="has an empty key; rename it"):
        obs_spec(space)


def changed_box(low: float) -> spaces.Box:
    """Bounds that Gymnasium would have refused."""
    box = spaces.Box(-1, 1, (2,))
    box.low[:] = low
    return box


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (spaces.Box(-1, 1, (0,)), "has no elements"),
        (spaces.Dict({}), "has no elements"),
        (spaces.Tuple(()), "has no elements"),
        (spaces.MultiDiscrete([]), "has no elements"),
        (changed_box(np.nan), "has NaN bounds or is empty"),
        (changed_box(2.0), "has NaN bounds or is empty"),
    ],
)
def test_spaces_that_contain_nothing(space, message):
    with pytest.raises(EnvError, match=message):
        obs_spec(space)
    if not isinstance(space, spaces.Dict | spaces.Tuple):
        with pytest.raises(EnvError, match=f"^action space .* {message}"):
            array_spec(space, "action")


class Vast(spaces.Box):
    """An image of 12000 x 12000 pixels, without the gigabytes that its bounds take."""

    def __init__(self) -> None:
        super().__init__(0, 255, (1, 1, 3), np.uint8)
        self._shape = (12000, 12000, 3)


@pytest.mark.parametrize(
    "space", [Vast(), spaces.Discrete(10**12), spaces.MultiDiscrete([10**9, 2]), spaces.MultiBinary(10**8)]
)
def test_spaces_that_no_memory_holds(space):
    with pytest.raises(EnvError, match=r"elements or categories, more than the 67,108,864 that are supported; wrap"):
        obs_spec(space)


def test_what_is_not_an_env_is_refused():
    with pytest.raises(EnvError, match="env 0 is None, which has no observation_space"):
        GymnasiumEnvs([lambda: None], 3)  # type: ignore[list-item]


# Vector envs


class Changed(VectorWrapper):
    """A vector env whose steps are changed."""

    def __init__(self, env: VectorEnv[Any, Any, Any], change: Callable[[tuple[Any, ...]], Any]) -> None:
        super().__init__(env)
        self._change = change

    def step(self, actions: Any) -> Any:
        return self._change(super().step(actions))


def stepped(
    change: Callable[[tuple[Any, ...]], Any], mode: AutoresetMode = AutoresetMode.NEXT_STEP, **kind: Any
) -> Any:
    """The slot after one step."""
    vector = SyncVectorEnv(factories(ROWS, **kind), autoreset_mode=mode)
    env = GymnasiumVectorEnv(Changed(vector, change), seed=3)
    slot = opened(env)
    env.step(np.ones(ROWS, dtype=np.int64), slot)
    return slot


def part(place: int, value: Any) -> Callable[[tuple[Any, ...]], Any]:
    """Replaces one of the five values; a function is applied to it."""
    return lambda result: tuple(
        (value(one) if callable(value) else value) if place == index else one for index, one in enumerate(result)
    )


class Unconvertible:
    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("no array")


REWARDS: list[Any] = [
    *(1.0, np.ones(1), np.ones(ROWS + 1), np.ones(ROWS - 1), np.ones((1, ROWS)), ["a", "b", "c"], None),
    *(np.ones(ROWS, complex), np.ones(ROWS, object), [[1], [1, 2], [3]], Unconvertible(), {"r": 1}),
]
FLAGS: list[Any] = [
    *(False, np.zeros(1, bool), np.zeros(ROWS + 1, bool), [0.5] * ROWS, [2] * ROWS, [-1] * ROWS, [np.nan] * ROWS),
    *(["False"] * ROWS, None, [None] * ROWS, np.zeros((ROWS, 2), bool), np.zeros(ROWS, np.float32)),
]


@pytest.mark.parametrize("value", REWARDS, ids=lambda value: repr(value)[:30])
def test_rewards_of_a_vector_env(value):
    with pytest.raises(EnvError, match=r"^the vector env: the rewards must be 3 numbers, one per row, got \S"):
        stepped(part(1, lambda _: value))


@pytest.mark.parametrize("place", [2, 3])
@pytest.mark.parametrize("value", FLAGS, ids=lambda value: repr(value)[:30])
def test_flags_of_a_vector_env(place, value):
    with pytest.raises(EnvError, match=r"^the vector env: the t\w+ must be 3 booleans, one per row, got \S"):
        stepped(part(place, lambda _: value))


def test_what_is_unambiguous_is_accepted():
    changed = part(1, lambda reward: reward.reshape(ROWS, 1))
    np.testing.assert_array_equal(stepped(changed).reward, stepped(lambda result: result).reward)
    assert stepped(part(2, [0, 1, 0])).terminated.tolist() == [False, True, False]
    assert stepped(part(3, [[True], [False], [False]])).truncated.tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda result: result[:4], r"step must return \(obs, rewards, terminations, truncations, infos\), got 4"),
        (lambda result: list(result), "got list"),
        (lambda result: None, "got NoneType"),
        (part(4, lambda _: []), r"step must return its info as a dict, got \[\]"),
        (part(0, lambda obs: obs[:2]), r"the observations must have one entry per row \(3\), got 2 entries"),
        (part(0, lambda obs: np.concatenate([obs, obs])), r"the observations must have one entry .*, got 6 entries"),
        (part(0, lambda obs: None), r"the observations must have one entry per row \(3\), got None"),
        (part(0, lambda obs: obs.astype(str)), r"env 0 .* returned an observation of dtype <U\d+"),
        (part(0, lambda obs: obs.astype(object)), "env 0 .* returned an observation of dtype object"),
    ],
)
def test_other_steps_of_a_vector_env(change, message):
    with pytest.raises(EnvError, match=message):
        stepped(change)


def test_floats_for_categories_in_a_vector_env():
    with pytest.raises(EnvError, match="returned an observation of dtype float64; its space requires integers"):
        stepped(part(0, lambda obs: obs + 0.5), form="discrete")


def final(value: Any, **more: Any) -> Callable[[tuple[Any, ...]], Any]:
    """Replaces the final observations of envs that end in every step."""
    return part(4, lambda infos: {**infos, "final_obs": value, **more})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (final(5), r"infos\['final_obs'\] must have one entry per row \(3\), got 5"),
        (final(np.zeros((2, 5))), r"infos\['final_obs'\] must have one entry per row \(3\), got 2 entries"),
        (final([None, np.zeros(5), np.zeros(5)]), r"env 0 .* was truncated without infos\['final_obs'\]"),
        (final(np.zeros((3, 5)), _final_obs=[True, False, True]), "env 1 .* was truncated without"),
        (final(np.zeros((3, 5)), _final_obs=[1, 2, 3]), r"infos\['_final_obs'\] must be 3 booleans"),
        (final(np.zeros((3, 4))), r"env 0 .* returned an observation of shape \(4,\)"),
    ],
)
def test_final_observations_of_a_vector_env(change, message):
    with pytest.raises(EnvError, match=message):
        stepped(change, AutoresetMode.SAME_STEP, lengths=[1], endings=["truncated"])


@pytest.mark.parametrize("value", [3, np.ones(2), [1, [2, 2], 3], {"a": np.ones(3)}])
def test_metrics_of_a_vector_env(value):
    vector = SyncVectorEnv(factories(ROWS), autoreset_mode=AutoresetMode.NEXT_STEP)
    changed = Changed(vector, part(4, lambda infos: {**infos, "fuel": value}))
    env = GymnasiumVectorEnv(changed, seed=3, metrics={"fuel": "last"})
    slot = slot_for(env)
    env.reset(slot)
    with pytest.raises(EnvError, match=r"fuel'?\]?.* must (have one entry per row|be one number)"):
        env.step(np.ones(ROWS, dtype=np.int64), slot)


# Masks


MASKS: list[Any] = [
    *([0, -np.inf, 0, 0], [0.0, -1e9, 0, 0], [1, np.nan, 1, 1], [2, 0, 1, 1], [-1, 0, 1, 1], [0.5, 1, 1, 1]),
    *(["a", "b", "c", "d"], [True, None, True, True], np.ones(4, complex)),
]


class MaskedEnv(CounterEnv):
    """Returns a given mask after the first step."""

    mask: Any = None

    def _info(self) -> dict[str, Any]:
        return {"action_mask": np.ones(4, bool) if self.place.step == 0 else self.mask}

    def _refuse_forbidden(self, action: Any) -> None:
        pass


@pytest.mark.parametrize("mask", MASKS, ids=repr)
def test_masks_that_are_not_flags(mask):
    def make() -> gym.Env[Any, Any]:
        env = MaskedEnv(lengths=[9])
        env.mask = mask
        return env

    local = GymnasiumEnvs([make], 3)
    vector = SyncVectorEnv([CounterMaskEnv] * ROWS, autoreset_mode=AutoresetMode.NEXT_STEP)
    masks = np.full(ROWS, None, object)
    masks[:] = [np.ones(4), mask, np.ones(4)]
    batched = GymnasiumVectorEnv(Changed(vector, part(4, {"action_mask": masks})), seed=3)
    for env, row in ((local, 0), (batched, 1)):
        slot = opened(env)
        with pytest.raises(
            EnvError, match=rf"^env {row} .* returned the action mask .*1 = allowed; additive masks are"
        ):
            env.step(np.ones(env.num_rows, dtype=np.int64), slot)


class CounterMaskEnv(MaskedEnv):
    """Allows everything."""

    mask = np.ones(4, np.int8)


@pytest.mark.parametrize(
    "masks", [np.array([[0.0, -np.inf, 0.0, 0.0]] * ROWS), np.full((ROWS, 4), np.nan), np.full((ROWS, 4), 2)]
)
def test_batched_masks_that_are_not_flags(masks):
    vector = SyncVectorEnv([CounterMaskEnv] * ROWS, autoreset_mode=AutoresetMode.NEXT_STEP)
    env = GymnasiumVectorEnv(Changed(vector, part(4, {"action_mask": masks})), seed=3)
    slot = opened(env)
    with pytest.raises(EnvError, match="additive masks are not supported"):
        env.step(np.ones(ROWS, dtype=np.int64), slot)


@pytest.mark.parametrize(
    ("infos", "message"),
    [
        ({"action_mask": np.ones((2, 4))}, r"infos\['action_mask'\] must have one entry per row \(3\), got 2"),
        ({"action_mask": np.ones((3, 5))}, "returned an action mask with 5 entries; its action space requires 4"),
        ({"action_mask": 1}, r"infos\['action_mask'\] must have one entry per row"),
        ({"action_mask": np.ones((3, 4)), "_action_mask": [True, True, False]}, "env 2 .* returned no 'action_mask'"),
        ({}, "env 0 .* returned no 'action_mask' in its infos"),
    ],
)
def test_batched_masks_of_other_shapes(infos, message):
    vector = SyncVectorEnv([CounterMaskEnv] * ROWS, autoreset_mode=AutoresetMode.NEXT_STEP)
    env = GymnasiumVectorEnv(Changed(vector, part(4, infos)), seed=3)
    slot = opened(env)
    with pytest.raises(EnvError, match=message):
        env.step(np.ones(ROWS, dtype=np.int64), slot)


# Single envs


class Evasive:
    """An observation whose methods fail."""

    def __len__(self) -> int:
        raise KeyError("length")

    def __getitem__(self, key: Any) -> Any:
        raise ZeroDivisionError("item")

    def __repr__(self) -> str:
        raise RuntimeError("repr")


class FailingInfo(dict[str, Any]):
    def __iter__(self) -> Any:
        raise RuntimeError("iter")

    def keys(self) -> Any:
        raise RuntimeError("keys")


class FailingGet(dict[str, Any]):
    def get(self, *args: Any) -> Any:
        raise RuntimeError("get")


class AnyStepEnv(gym.Env[Any, Any]):
    """Returns whatever it is told to."""

    action_space = spaces.Discrete(2)

    def __init__(self, answer: Any, space: spaces.Space[Any] = BOX) -> None:
        self.observation_space, self._answer = space, answer

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> Any:
        return self._answer


def step_of(answer: Any, space: spaces.Space[Any] = BOX) -> Any:
    env = GymnasiumEnvs([lambda: AnyStepEnv(answer, space)], 3)
    slot = slot_for(env)
    env.reset(slot)
    env.step(np.zeros(1, np.int64), slot)
    return slot


OBS = np.zeros(2, np.float32)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((Unconvertible(), 0.0, False, False, {}), "cannot be converted to an array: RuntimeError: no array"),
        ((Evasive(), 0.0, False, False, {}), "returned an observation"),
        ((range(10**12), 0.0, False, False, {}), r"of shape \(1000000000000,\)"),
        ((OBS, 10**400, False, False, {}), r"the reward must be one number, got 1000+\.\.\.$"),
        ((OBS, Unconvertible(), False, False, {}), "the reward must be one number"),
        ((OBS, Evasive(), False, False, {}), "the reward must be one number, got a Evasive"),
        ((OBS, 0.0, [[1], [1, 2]], False, {}), r"must be booleans, got \[\[1\], \[1, 2\]\]"),
        ((OBS, 0.0, False, Unconvertible(), {}), "terminated and truncated must be booleans"),
        ((OBS, 0.0, False, False, FailingInfo(a=1)), r"step returned an info that cannot be read \(RuntimeError\)"),
    ],
    ids=range(9),
)
def test_values_of_single_envs(answer, message):
    with pytest.raises(EnvError, match=rf"^env 0 \(seed \d+\).*{message}"):
        step_of(answer)


def test_parts_of_an_observation_that_fail():
    with pytest.raises(EnvError, match=r"returned an observation without 'a' \(ZeroDivisionError: item\)"):
        step_of((Evasive(), 0.0, False, False, {}), spaces.Dict({"a": BOX}))


def test_an_info_of_another_class_is_read_once():
    assert step_of((OBS, 1.0, False, False, FailingGet(a=1))).reward.tolist() == [1.0]


class MaskMethodFails(CounterEnv):
    def action_masks(self) -> Any:
        raise RuntimeError("no masks today")


def test_a_mask_method_that_raises():
    env = GymnasiumEnvs([MaskMethodFails], 3)
    with pytest.raises(EnvError, match=r"^env 0 \(seed \d+\) raised an exception in action_masks: RuntimeError"):
        env.reset(slot_for(env))


# PettingZoo


@pytest.mark.parametrize("info", [5, "x", [1], np.ones(2), FailingInfo(a=1)], ids=range(5))
@pytest.mark.parametrize("call", ["reset", "step"])
def test_infos_of_agents(call, info):
    class OddTeam(TeamEnv):
        def reset(self, seed: int | None = None, options: Any = None) -> Any:
            observations, infos = super().reset(seed=seed)
            return observations, dict.fromkeys(observations, info) if call == "reset" else infos

        def step(self, actions: Any) -> Any:
            *rest, _ = super().step(actions)
            return *rest, dict.fromkeys(rest[0], info)

    def run() -> None:
        env = PettingZooEnvs([OddTeam], 3)
        slot = opened(env)
        env.step(np.zeros(env.num_rows, np.int64), slot)

    with pytest.raises(EnvError, match=rf"^env 0 .*agent '.*: {call} (must return its info|returned an info)"):
        run()


# States of envs


class SavingEnv(CounterEnv):
    """Has a state that JSON does not have."""

    def save_state(self) -> Any:
        return {1: (self.place.step, 3), "seen": {self.place.step}}

    def load_state(self, state: Any) -> None:
        self.loaded = state


class NotSavedEnv(SavingEnv):
    def save_state(self) -> Any:
        raise RuntimeError("no state today")


class NotLoadedEnv(SavingEnv):
    def load_state(self, state: Any) -> None:
        raise KeyError("rng")


class SavingTeam(TeamEnv):
    def save_state(self) -> Any:
        raise RuntimeError("no state today")

    def load_state(self, state: Any) -> None:
        raise KeyError("rng")


def test_a_state_that_fails_names_the_env():
    who = r"^env 1 \(seed \d+\) raised an exception in"
    with pytest.raises(EnvError, match=rf"{who} save_state: RuntimeError: no state today"):
        GymnasiumEnvs([SavingEnv, NotSavedEnv], 3).save_state()
    state = GymnasiumEnvs([SavingEnv, NotLoadedEnv], 3).save_state()
    assert state is not None
    with pytest.raises(EnvError, match=rf"{who} load_state: KeyError: 'rng'"):
        GymnasiumEnvs([SavingEnv, NotLoadedEnv], 3).load_state(state)
    with pytest.raises(EnvError, match=r"^env 0 \(seed \d+\) raised an exception in save_state: RuntimeError"):
        PettingZooEnvs([SavingTeam], 3).save_state()


def test_a_resumed_env_gets_the_state_that_it_saved(tmp_path):
    small = {"num_envs": 1, "num_steps": 8, "batch_size": 8, "epochs": 1, "hidden": [8], "eval_episodes": 0}
    made: list[SavingEnv] = []

    def make() -> SavingEnv:
        made.append(SavingEnv(lengths=[3]))
        return made[-1]

    file = tmp_path / "agent.safetensors"
    PPO(make, **small).learn(8).save(file)
    saved = made[-1].save_state()
    PPO.load(file, env=make).learn(8)
    assert made[-1].loaded == saved
    assert isinstance(made[-1].loaded[1], tuple)
