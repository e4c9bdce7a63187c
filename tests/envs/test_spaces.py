"""Gymnasium spaces to specs, and observations to rows."""

import math
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.data.specs import ArraySpec
from surefoot.data.tree import tree_items
from surefoot.envs.protocol import new_slot
from surefoot.envs.protocol.spaces import ObsWriter, array_spec, obs_spec
from surefoot.errors import EnvError
from tests.envs.tasks import FORMS


def who(row: int) -> str:
    return f"env {row} (seed {100 + row})"


def written(space: spaces.Space[Any], obs: Any, row: int = 1) -> Any:
    writer = ObsWriter(space)
    slot = new_slot(3, writer.spec, 0)
    writer.write(obs, slot.obs, row, who)
    return slot.obs


@pytest.mark.parametrize(
    ("space", "spec"),
    [
        (spaces.Box(-1, 1, (2, 3)), ArraySpec("box", (2, 3), "float32", -1.0, 1.0)),
        (spaces.Box(-np.inf, np.inf, (2,), np.float64), ArraySpec("box", (2,), "float32")),
        (
            spaces.Box(np.array([-2.0, 0.0]), np.array([np.inf, 0.5]), dtype=np.float64),
            ArraySpec("box", (2,), "float32", (-2.0, 0.0), (math.inf, 0.5)),
        ),
        (spaces.Box(0, 255, (8, 9, 3), np.uint8), ArraySpec("image", (8, 9, 3), "uint8", 0.0, 255.0)),
        (spaces.Box(0, 255, (8, 9), np.uint8), ArraySpec("image", (8, 9), "uint8", 0.0, 255.0)),
        (spaces.Box(0, 255, (8,), np.uint8), ArraySpec("box", (8,), "float32", 0.0, 255.0)),
        (spaces.Box(0, 9, (8, 9), np.int32), ArraySpec("box", (8, 9), "float32", 0.0, 9.0)),
        (spaces.Discrete(5), ArraySpec("discrete", (), "int64", sizes=(5,), start=(0,))),
        (spaces.Discrete(5, start=-2), ArraySpec("discrete", (), "int64", sizes=(5,), start=(-2,))),
        (
            spaces.MultiDiscrete([[3, 2], [4, 5]], start=[[1, 0], [0, -1]]),
            ArraySpec("multi_discrete", (2, 2), "int64", sizes=(3, 2, 4, 5), start=(1, 0, 0, -1)),
        ),
        (spaces.MultiBinary(4), ArraySpec("multi_binary", (4,), "float32", 0.0, 1.0)),
        (spaces.MultiBinary([2, 3]), ArraySpec("multi_binary", (2, 3), "float32", 0.0, 1.0)),
    ],
)
def test_the_spec_of_a_space(space, spec):
    assert obs_spec(space) == spec


def test_an_action_is_never_an_image():
    assert array_spec(spaces.Box(0, 255, (8, 9, 3), np.uint8), "action").kind == "box"


def test_nested_spaces_become_one_flat_dict():
    assert list(obs_spec(FORMS["nested"].space)) == ["arm/grip", "arm/joint", "clock"]
    assert list(obs_spec(FORMS["tuple"].space)) == ["0", "1", "2/luck"]


@pytest.mark.parametrize("space", [spaces.Text(5), spaces.Sequence(spaces.Discrete(2))])
def test_other_observation_spaces_are_refused_with_what_is_supported(space):
    with pytest.raises(
        EnvError, match=r"observation space .* is not supported; wrap the env in .* returns Box, .*Dict"
    ):
        obs_spec(space)


MIXED = spaces.Dict({"camera": spaces.Dict({"caption": spaces.Text(5), "depth": spaces.Box(0, 1, (2,))})})
"""With a key that a policy cannot learn from, below the top."""


def test_keys_that_cannot_be_learned_from_are_left_out():
    assert list(obs_spec(MIXED)) == ["camera/depth"]
    writer = ObsWriter(MIXED)
    assert writer.left_out == ("camera/caption (Text)",)
    assert (
        written(MIXED, MIXED.sample() | {"camera": {"caption": "abc", "depth": [0.5, 1]}})["camera/depth"][1, 0] == 0.5
    )
    batch = {"camera": {"caption": ("a", "b", "c"), "depth": np.ones((3, 2), np.float32)}}
    rows = new_slot(3, writer.spec, 0).obs
    assert writer.write_batch(batch, rows)
    assert rows["camera/depth"].sum() == 6
    everything = spaces.Tuple(
        (spaces.Discrete(2), spaces.Sequence(spaces.Discrete(2)), spaces.Graph(MIXED["camera"]["depth"], None))
    )
    assert ObsWriter(everything).left_out == ("1 (Sequence)", "2 (Graph)")
    assert ObsWriter(FORMS["nested"].space).left_out == ()


@pytest.mark.parametrize("space", [spaces.Dict({"note": spaces.Text(5)}), spaces.Tuple((spaces.Text(5),))])
def test_a_space_with_nothing_to_learn_from_is_refused(space):
    with pytest.raises(EnvError, match=r"only keys that a policy cannot learn from \(Text\); wrap the env in"):
        obs_spec(space)


@pytest.mark.parametrize("space", [spaces.Dict({"a": spaces.Discrete(2)}), spaces.Tuple((spaces.Discrete(2),))])
def test_a_part_of_an_action_is_one_array(space):
    with pytest.raises(EnvError, match=r"action space .* is not supported; use Box, .* or a Tuple or Dict of them$"):
        array_spec(space, "action")


def test_an_observation_lands_in_its_row_alone():
    rows = written(FORMS["nested"].space, {"arm": {"joint": [1.5, 2.5], "grip": 4}, "clock": [[3], [9]]})
    assert rows["arm/joint"].tolist() == [[0, 0], [1.5, 2.5], [0, 0]]
    assert rows["arm/grip"].tolist() == [0, 4, 0]
    assert rows["clock"].tolist() == [[[0], [0]], [[3], [9]], [[0], [0]]]


def test_categories_are_counted_from_their_start():
    assert written(spaces.Discrete(5, start=-2), 1).tolist() == [0, 3, 0]
    space = spaces.MultiDiscrete([3, 4], start=[1, -1])
    assert written(space, np.array([3, 0], dtype=np.uint8).astype(np.int16)).tolist() == [[0, 0], [2, 1], [0, 0]]


def leaf_spaces() -> st.SearchStrategy[spaces.Space[Any]]:
    sizes = st.integers(1, 4)
    return st.one_of(
        st.builds(lambda shape: spaces.Box(-3, 3, shape), st.lists(sizes, max_size=3).map(tuple)),
        st.builds(
            lambda shape: spaces.Box(0, 255, shape, np.uint8), st.lists(sizes, min_size=2, max_size=3).map(tuple)
        ),
        st.builds(lambda n, start: spaces.Discrete(n, start=start), sizes, st.integers(-5, 5)),
        st.builds(
            lambda ns: spaces.MultiDiscrete(ns, start=[n - 2 for n in ns]), st.lists(sizes, min_size=1, max_size=3)
        ),
        st.builds(spaces.MultiBinary, sizes),
    )


def any_space() -> st.SearchStrategy[spaces.Space[Any]]:
    return st.recursive(
        leaf_spaces(),
        lambda inner: st.one_of(
            st.dictionaries(st.text("abc", min_size=1, max_size=2), inner, min_size=1, max_size=3).map(spaces.Dict),
            st.lists(inner, min_size=1, max_size=3).map(spaces.Tuple),
        ),
        max_leaves=5,
    )


def leaves_of(space: spaces.Space[Any], obs: Any) -> list[np.ndarray]:
    """The leaves in the order of the space, category counts from 0."""
    if isinstance(space, spaces.Dict):
        return [leaf for key in space.spaces for leaf in leaves_of(space[key], obs[key])]
    if isinstance(space, spaces.Tuple):
        return [leaf for part, value in zip(space.spaces, obs, strict=True) for leaf in leaves_of(part, value)]
    return [np.asarray(obs) - space.start if hasattr(space, "start") else np.asarray(obs)]


@settings(max_examples=60, deadline=None)
@given(any_space(), st.integers(0, 2**31))
def test_whatever_a_space_contains_is_written_whole(space, seed):
    space.seed(seed)
    obs = space.sample()
    rows = [leaf for _, leaf in tree_items(written(space, obs))]
    expected = leaves_of(space, obs)
    assert len(rows) == len(expected)
    for row, leaf in zip(rows, expected, strict=True):
        np.testing.assert_array_equal(row[1], leaf)
        assert not row[[0, 2]].any()
