"""Slots and action masks."""

import numpy as np
import pytest
from gymnasium import spaces

from surefoot.data.tree import tree_items
from surefoot.envs.protocol import flat_mask, new_slot
from surefoot.envs.protocol.spaces import array_spec, obs_spec
from surefoot.errors import EnvError
from tests.envs.tasks import ACTIONS, FORMS

FIVE = array_spec(spaces.MultiDiscrete([3, 2]), "action")


@pytest.mark.parametrize("form", FORMS)
def test_a_new_slot_has_the_spec_s_shapes_and_dtypes(form):
    spec = obs_spec(FORMS[form].space)
    slot = new_slot(4, spec, mask_size=0)
    for (key, leaf), (spec_key, part) in zip(tree_items(slot.obs), tree_items(spec), strict=True):
        assert key == spec_key
        assert leaf.shape == (4, *part.shape)
        assert leaf.dtype == part.dtype
    assert slot.action_mask is None
    assert slot.valid.all()
    assert not slot.ended.any()


def test_a_slot_s_masks_allow_everything_at_first():
    slot = new_slot(3, obs_spec(FORMS["vector"].space), mask_size=5)
    assert slot.action_mask is not None
    assert slot.action_mask.shape == (3, 5)
    assert slot.action_mask.all()


def test_ended_is_either_flag():
    slot = new_slot(4, obs_spec(FORMS["vector"].space), mask_size=0)
    slot.terminated[:] = [True, True, False, False]
    slot.truncated[:] = [True, False, True, False]
    assert slot.ended.tolist() == [True, True, True, False]


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        ("discrete", 4),
        ("shifted discrete", 4),
        ("multi_discrete", 5),
        ("shifted multi_discrete", 11),
        ("multi_binary", 3),
        ("binary grid", 4),
        ("box", 0),
    ],
)
def test_how_many_choices_a_mask_covers(actions, expected):
    assert array_spec(ACTIONS[actions], "action").num_choices == expected


@pytest.mark.parametrize(
    "mask",
    [
        np.array([1, 0, 1, 0, 1], dtype=np.int8),
        np.array([True, False, True, False, True]),
        [1, 0, 1, 0, 1],
        (np.array([1, 0, 1]), np.array([0, 1])),
        [[True, False, True], [False, True]],
    ],
)
def test_masks_come_flat_or_one_a_choice(mask):
    flat = flat_mask(mask, FIVE, "env 0")
    assert flat.dtype == bool
    assert flat.tolist() == [True, False, True, False, True]


@pytest.mark.parametrize("mask", [np.ones(4), (np.ones(3), np.ones(3)), np.ones((5, 5)), [1], None])
def test_a_mask_of_another_length_is_refused(mask):
    with pytest.raises(EnvError, match=r"env 7 returned (an|the) action mask"):
        flat_mask(mask, FIVE, "env 7")


def test_a_grid_of_yes_or_no_takes_a_grid_of_masks():
    grid = spaces.MultiBinary([2, 2])
    mask = flat_mask(np.array([[1, 0], [0, 1]]), array_spec(grid, "action"), "env 0")
    assert mask.tolist() == [True, False, False, True]
