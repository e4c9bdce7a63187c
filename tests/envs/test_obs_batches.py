"""Batched observations: written at once what row by row would be, and refused where row by row would be."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorWrapper
from gymnasium.vector.utils import concatenate, create_empty_array

from surefoot.data.tree import tree_items
from surefoot.envs.adapters.gymnasium_vector import GymnasiumVectorEnv
from surefoot.envs.protocol import new_slot
from surefoot.envs.protocol.spaces import ObsWriter
from surefoot.errors import EnvError
from tests.envs.tasks import FORMS, Place, factories, opened

PLACES = [Place(row, 2 * row, 3 + row, 1.0, 0.25 * row) for row in range(4)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rows", [slice(None), np.array([True, False, False, True])])
def test_the_same_as_row_by_row(form, rows):
    space, show = FORMS[form]
    writer = ObsWriter(space)
    shown = [show(place) for place in PLACES]
    batch = concatenate(space, shown, create_empty_array(space, len(PLACES)))
    at_once, one_by_one = (new_slot(4, writer.spec, 0).obs for _ in range(2))
    assert writer.write_batch(batch, at_once, rows)
    for row in np.arange(4)[rows]:
        writer.write(shown[row], one_by_one, row, str)
    for (key, leaf), (_, expected) in zip(tree_items(at_once), tree_items(one_by_one), strict=True):
        np.testing.assert_array_equal(leaf, expected, err_msg=key)


@pytest.mark.parametrize(
    ("space", "batch"),
    [
        (spaces.Box(-1, 1, (2,)), np.zeros((4, 3), np.float32)),
        (spaces.Box(-1, 1, (2,)), np.zeros((3, 2), np.float32)),
        (spaces.Box(-1, 1, (2,)), np.zeros((4, 2), object)),
        (spaces.Box(-1, 1, (2,)), [np.zeros(2)] * 4),
        (spaces.Box(0, 255, (12, 12), np.uint8), np.zeros((4, 12, 12), np.float32)),
        (spaces.Discrete(3, start=1), np.array([1, 2, 3, 4])),
        (spaces.Discrete(3, start=1), np.array([0, 1, 2, 3])),
        (spaces.Discrete(3), np.array([0.0, 1.0, 2.0, 0.0])),
        (spaces.MultiDiscrete([2, 3]), np.array([[0, 0], [1, 2], [2, 0], [0, 0]])),
        (spaces.Dict({"a": spaces.Discrete(2), "b": spaces.Discrete(2)}), {"a": np.ones(4, np.int64)}),
        (spaces.Dict({"a": spaces.Discrete(2), "b": spaces.Discrete(2)}), np.ones((4, 2))),
    ],
)
def test_what_does_not_fit_is_not_written(space, batch):
    writer = ObsWriter(space)
    target = new_slot(4, writer.spec, 0).obs
    assert not writer.write_batch(batch, target)
    assert not any(leaf.any() for _, leaf in tree_items(target))


class Relayed(VectorWrapper):
    """Changes the observations of a vector env."""

    def __init__(self, env: gym.vector.VectorEnv, change: Any) -> None:
        super().__init__(env)
        self._change = change

    def reset(self, **how: Any) -> Any:
        obs, infos = super().reset(**how)
        return self._change(obs), infos

    def step(self, actions: Any) -> Any:
        obs, *rest = super().step(actions)
        return (self._change(obs), *rest)


def relayed(change: Any) -> GymnasiumVectorEnv:
    vector = SyncVectorEnv(factories(3, form="vector"), autoreset_mode=AutoresetMode.NEXT_STEP)
    return GymnasiumVectorEnv(Relayed(vector, change), seed=3)


def test_vector_envs_may_give_a_list():
    np.testing.assert_array_equal(opened(relayed(list)).obs, opened(relayed(np.copy)).obs)


def test_an_error_names_the_row():
    with pytest.raises(
        EnvError, match=r"env 1 \(seed \d+\) returned an observation of shape \(2,\); its space has shape \(5,\)"
    ):
        opened(relayed(lambda obs: [obs[0], obs[1][:2], obs[2]]))
