"""The rollout's memory: envs write through numpy, policies read through torch, nothing is copied."""

import numpy as np
import pytest
import torch

from surefoot.data.records import Chunks
from surefoot.data.tree import tree_first, tree_items
from surefoot.rollout.buffer import RolloutBuffer
from surefoot.rollout.fields import COLLECTOR, Field, array
from tests.envs.tasks import FORMS, counters
from tests.rollout.known_policies import KnownPolicy

T, F = True, False


def buffer_of(num_steps: int, rows: int = 2, **kwargs: object) -> RolloutBuffer:
    env = counters(rows, **kwargs)
    return RolloutBuffer(num_steps, env, KnownPolicy(env.action_spec), Chunks(num_steps, num_steps))


@pytest.mark.parametrize("form", FORMS)
def test_what_a_step_leaves_is_what_the_next_one_acts_on(form):
    buffer = buffer_of(3, form=form)
    for (_, leaf), (_, tensor) in zip(tree_items(buffer.slots[0].obs), tree_items(buffer.obs), strict=True):
        leaf[1] = 1
        assert tensor[1, 1].eq(1).all()
        assert tensor[[0, 2, 3]].eq(0).all()
        assert tensor[1, 0].eq(0).all()
    obs, _, _, _ = buffer.inputs_at(1, ())
    assert tree_first(obs)[1].eq(1).all()


def test_reward_and_flags_are_of_the_step_itself():
    buffer = buffer_of(3)
    slot = buffer.slots[1]
    slot.reward[:], slot.terminated[:], slot.truncated[:], slot.valid[:] = [5, 6], [T, F], [F, T], [T, F]
    assert buffer.reward.tolist() == [[0, 0], [5, 6], [0, 0]]
    assert buffer.terminated.tolist() == [[F, F], [T, F], [F, F]]
    assert buffer.truncated.tolist() == [[F, F], [F, T], [F, F]]
    assert buffer.valid.tolist() == [[T, T], [T, F], [T, T]]


def test_an_added_field_is_recorded_and_crosses_to_the_core_by_its_name():
    buffer = buffer_of(3)
    buffer.add(Field("label", array((2, 2)), COLLECTOR))
    buffer.label[1, 0] = torch.arange(4.0).view(2, 2)
    (flat,) = buffer.flat["label"]
    assert flat.shape == (3, 2, 4)
    assert flat[1, 0].tolist() == [0, 1, 2, 3]
    rollout = buffer.rollout(None)
    assert rollout.extras["label"] is buffer.label
    assert "label" in rollout.learned_extras
    assert {name: len(leaves) for name, leaves in buffer.flat.items()}.keys() == buffer.fields.keys()


def test_masks_go_with_the_observation():
    buffer = buffer_of(2, masks_in_info=True)
    buffer.slots[0].action_mask[1] = [T, F, F, T]
    _, _, _, mask = buffer.inputs_at(1, ())
    assert mask.tolist() == [[T, T, T, T], [T, F, F, T]]
    assert buffer.inputs_at(0, ())[3].all()
    assert buffer_of(2).inputs_at(0, ())[3] is None


@pytest.mark.parametrize(
    ("started", "valid", "ended", "starts_next"),
    [
        (F, T, F, F),
        (T, T, F, F),
        (F, T, T, T),
        (T, T, T, T),  # an episode of one step
        (T, F, F, T),  # a row that only reset has not started yet
        (F, F, F, T),  # nothing is remembered across what was not seen
    ],
)
def test_when_an_episode_starts(started, valid, ended, starts_next):
    buffer = buffer_of(1, rows=1)
    buffer.episode_start[0] = started
    buffer.slots[0].valid[:], buffer.slots[0].truncated[:] = valid, ended
    buffer.mark_starts(0, slice(0, 1))
    assert bool(buffer.episode_start[1, 0]) is starts_next


def test_the_next_rollout_begins_where_this_one_ended():
    buffer = buffer_of(3, masks_in_info=True)
    buffer.opening.obs[:] = np.arange(10).reshape(2, 5)
    buffer.opening.action_mask[:] = [[T, F, T, F], [F, T, F, T]]
    buffer.episode_start[-1] = torch.tensor([T, F])
    buffer.carry_over()
    obs, _, start, mask = buffer.inputs_at(0, ())
    assert obs.flatten().tolist() == list(range(10))
    assert start.tolist() == [T, F]
    assert mask.tolist() == [[T, F, T, F], [F, T, F, T]]


def test_an_opening_is_saved_as_a_copy_and_loaded():
    buffer, other = buffer_of(3, form="nested", masks_in_info=True), buffer_of(3, form="nested", masks_in_info=True)
    buffer.opening.obs["arm/grip"][:] = [4, 5]
    buffer.opening.action_mask[:] = F
    buffer.episode_start[-1] = torch.tensor([F, T])
    saved = buffer.opening_state()
    buffer.opening.obs["arm/grip"][:] = 9
    assert other.fits(saved)
    other.load_opening(saved)
    assert other.opening.obs["arm/grip"].tolist() == [4, 5]
    assert not other.opening.action_mask.any()
    assert other.episode_start[-1].tolist() == [F, T]
    assert not buffer_of(3, rows=3).fits(saved)
