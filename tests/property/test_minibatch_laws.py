from dataclasses import fields

import torch
from hypothesis import given
from hypothesis import strategies as st

from surefoot.data.records import Batch, Rollout, RolloutStats, Targets
from surefoot.philox import permutations
from surefoot.rollout.minibatches import flatten, minibatches


def encoded(steps: int, rows: int, valid: torch.Tensor, with_mask: bool) -> tuple[Rollout, Targets]:
    """Every number says which (step, row) and which field it belongs to: 100 * index + field."""
    index = 100 * torch.arange(steps * rows).view(steps, rows)

    def numbers(field: int, *shape: int) -> torch.Tensor:
        return (index + field).view(steps, rows, *(1 for _ in shape)).expand(steps, rows, *shape).clone().float()

    rollout = Rollout(
        obs={"a": numbers(1, 2), "b": numbers(2, 2, 3)},
        action=numbers(3, 2),
        log_prob=numbers(4),
        value=numbers(5),
        reward=numbers(6),
        terminated=torch.zeros(steps, rows, dtype=torch.bool),
        truncated=torch.zeros(steps, rows, dtype=torch.bool),
        final_value=numbers(7),
        episode_start=(index // 100) % 3 == 0,
        valid=valid,
        last_value=torch.zeros(rows),
        action_mask=((index // 100) % 2 == 0).unsqueeze(-1).expand(-1, -1, 4) if with_mask else None,
        state=(),
        stats=RolloutStats(int(valid.sum()), (), ()),
    )
    return rollout, Targets(advantage=numbers(8), returns=numbers(9))


def indices(batch: Batch) -> list[int]:
    """Which samples a batch holds; fails if any two fields of a sample do not belong together."""
    index = ((batch.log_prob - 4) / 100).round().long()
    leaves = {
        1: batch.obs["a"],
        2: batch.obs["b"],
        3: batch.action,
        5: batch.value,
        8: batch.advantage,
        9: batch.returns,
    }
    for field, leaf in leaves.items():
        assert ((leaf.flatten(1) if leaf.dim() > 1 else leaf.unsqueeze(1)) == (100 * index + field).unsqueeze(1)).all()
    assert torch.equal(batch.episode_start, index % 3 == 0)
    if batch.action_mask is not None:
        assert torch.equal(batch.action_mask, (index % 2 == 0).unsqueeze(1).expand(-1, 4))
    return index.tolist()


@given(st.integers(1, 7), st.integers(1, 5), st.integers(1, 40), st.booleans(), st.integers(0, 999), st.data())
def test_minibatches_are_a_permutation_and_fields_stay_together(steps, rows, size, with_mask, seed, data):
    share = data.draw(st.sampled_from([0.3, 1.0]))
    valid = torch.rand(steps, rows, generator=torch.Generator().manual_seed(seed)) < share
    batch = flatten(*encoded(steps, rows, valid, with_mask))
    expected = torch.arange(steps * rows)[valid.flatten()].tolist()
    assert indices(batch) == expected, "invalid samples are gone, the rest is in order"
    order = torch.from_numpy(permutations(seed, 0, 1, len(batch))[0])
    pieces = list(minibatches(batch, size, order))
    seen = [index for piece in pieces for index in indices(piece)]
    assert sorted(seen) == expected
    assert seen == [expected[i] for i in order]
    assert all(len(piece) == size for piece in pieces[:-1])
    assert all(0 < len(piece) <= size for piece in pieces)


@given(st.integers(1, 30), st.integers(1, 40))
def test_without_an_order_minibatches_are_consecutive(samples, size):
    batch = flatten(*encoded(samples, 1, torch.ones(samples, 1, dtype=torch.bool), False))
    assert [index for piece in minibatches(batch, size) for index in indices(piece)] == list(range(samples))


def test_every_field_of_a_batch_is_looked_at():
    known = {"obs", "action", "log_prob", "value", "advantage", "returns", "episode_start", "action_mask"}
    of_sequences = {"state", "batch_sizes"}  # tests/rollout/test_sequences.py
    added = {"extras", "weight"}  # tests/seams/test_prediction.py, tests/learning/test_labels.py
    assert {item.name for item in fields(Batch)} == known | of_sequences | added
