"""Flattened rollouts and shuffled minibatches: every valid sample once, all of its fields together."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from surefoot.data.records import Batch, Obs, Rollout, RolloutStats, Targets
from surefoot.data.tree import tree_items
from surefoot.rollout.minibatches import flatten, minibatches

PLACES = {  # what is added to a sample's number, so that each field has values of its own
    "action": 0.1,
    "log_prob": 0.2,
    "value": 0.3,
    "advantage": 0.4,
    "returns": 0.5,
}


def numbered_rollout(steps: int, rows: int, valid: Tensor, is_dict: bool) -> tuple[Rollout, Targets]:
    """Sample (t, n) has the number 100 t + n in every field."""
    number = 100.0 * torch.arange(steps)[:, None] + torch.arange(rows)
    vector = number[..., None] + torch.tensor([0.6, 0.7])
    obs: Obs = {"pose": vector, "count": number.long()} if is_dict else vector
    nothing = torch.zeros(steps, rows)
    rollout = Rollout(
        obs=obs,
        action=(number + PLACES["action"])[..., None],
        log_prob=number + PLACES["log_prob"],
        value=number + PLACES["value"],
        reward=nothing,
        terminated=nothing.bool(),
        truncated=nothing.bool(),
        final_value=nothing,
        episode_start=number.long() % 2 == 1,
        valid=valid,
        last_value=torch.zeros(rows),
        action_mask=(number.long()[..., None] >> torch.arange(3)) % 2 == 1 if is_dict else None,
        state=(),
        stats=RolloutStats(int(valid.sum()), (), ()),
    )
    return rollout, Targets(number + PLACES["advantage"], number + PLACES["returns"])


def assert_aligned(batch: Batch) -> list[int]:
    """All fields of a sample carry its number; the numbers."""
    numbers = (batch.value - PLACES["value"]).round().long()
    for name, place in PLACES.items():
        column = getattr(batch, name).reshape(len(batch))
        torch.testing.assert_close(column, numbers + place, msg=name)
    for key, leaf in tree_items(batch.obs):
        expected = numbers if key == "count" else numbers[:, None] + torch.tensor([0.6, 0.7])
        torch.testing.assert_close(leaf, expected, msg=key)
    assert torch.equal(batch.episode_start, numbers % 2 == 1)
    if batch.action_mask is not None:
        assert torch.equal(batch.action_mask, (numbers[:, None] >> torch.arange(3)) % 2 == 1)
    return numbers.tolist()


shapes = st.tuples(st.integers(1, 12), st.integers(1, 6))


@settings(max_examples=50, deadline=None, derandomize=True)
@given(shapes, st.booleans(), st.sampled_from([0.3, 1.0]), st.integers(1, 40), st.integers(0, 2**31))
def test_every_valid_sample_once_and_whole(shape, is_dict, share_valid, size, seed):
    generator = torch.Generator().manual_seed(seed)
    valid = torch.rand(shape, generator=generator) < share_valid
    batch = flatten(*numbered_rollout(*shape, valid, is_dict))
    expected = [100 * t + n for t, n in valid.nonzero().tolist()]
    assert assert_aligned(batch) == expected
    order = torch.randperm(len(batch), generator=generator)
    pieces = list(minibatches(batch, size, order))
    assert all(len(piece) == size for piece in pieces[:-1])
    seen = [number for piece in pieces for number in assert_aligned(piece)]
    assert seen == [expected[i] for i in order.tolist()]
    assert sorted(seen) == expected


def test_without_an_order_they_are_slices():
    rollout, targets = numbered_rollout(3, 4, torch.ones(3, 4, dtype=torch.bool), is_dict=False)
    pieces = [assert_aligned(piece) for piece in minibatches(flatten(rollout, targets), 5)]
    assert pieces == [[0, 1, 2, 3, 100], [101, 102, 103, 200, 201], [202, 203]]


def test_a_rollout_that_is_all_valid_is_not_copied():
    rollout, targets = numbered_rollout(3, 4, torch.ones(3, 4, dtype=torch.bool), is_dict=False)
    batch = flatten(rollout, targets)
    assert batch.value.data_ptr() == rollout.value.data_ptr()
