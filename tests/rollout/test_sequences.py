"""Minibatches of whole sequences: everything once, packed, cut at resets, each with the memory it began with."""

import pytest
import torch

from surefoot.data.records import Batch, Chunks, Rollout, RolloutStats, Targets
from surefoot.rollout.samples import pieces, samples_of
from surefoot.rollout.sequences import SequenceSamples, split
from surefoot.settings.config import PPOConfig

STEPS, ROWS, LENGTH = 23, 5, 6


def numbered(valid: torch.Tensor | None = None, burn_in: int = 0) -> tuple[Rollout, Targets]:
    """Every sample's fields say which row and step it is; the state kept for a chunk is -(its number)."""
    generator = torch.Generator().manual_seed(7)
    number = (torch.arange(ROWS) * 100.0 + torch.arange(STEPS)[:, None]).contiguous()
    starts = torch.rand(STEPS, ROWS, generator=generator) < 0.15
    valid = torch.ones(STEPS, ROWS, dtype=torch.bool) if valid is None else valid
    starts[1:] |= ~valid[:-1]
    chunks = Chunks(STEPS, LENGTH, burn_in)
    state = -(torch.arange(ROWS) * 100.0 + torch.tensor(chunks.state_steps)[:, None])
    flags = torch.zeros(STEPS, ROWS, dtype=torch.bool)
    rollout = Rollout(
        obs={"number": number.unsqueeze(-1)},
        action=number.unsqueeze(-1),
        log_prob=number,
        value=number,
        reward=number,
        terminated=flags,
        truncated=flags,
        final_value=number,
        episode_start=starts,
        valid=valid,
        last_value=torch.zeros(ROWS),
        action_mask=None,
        state=(state[..., None, None],),
        stats=RolloutStats(int(valid.sum()), (), ()),
        chunks=chunks,
    )
    return rollout, Targets(number, number)


def holes() -> torch.Tensor:
    return torch.rand(STEPS, ROWS, generator=torch.Generator().manual_seed(1)) > 0.2


def unpacked(batch: Batch) -> list[list[float]]:
    """The numbers of each sequence, in order."""
    sizes = batch.batch_sizes.tolist()
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] > 0
    assert sum(sizes) == len(batch)
    sequences: list[list[float]] = [[] for _ in range(sizes[0])]
    begin = 0
    for size in sizes:
        for place in range(size):
            sequences[place].append(batch.value[begin + place].item())
        begin += size
    return sequences


def assert_whole(batch: Batch, rollout: Rollout) -> None:
    """Each sequence is consecutive valid steps of one row without a reset inside, with the right memory."""
    for place, sequence in enumerate(unpacked(batch)):
        row, first = int(sequence[0] // 100), int(sequence[0] % 100)
        assert sequence == [100.0 * row + first + step for step in range(len(sequence))]
        steps = slice(first, first + len(sequence))
        assert rollout.valid[steps, row].all()
        assert not rollout.episode_start[first + 1 : first + len(sequence), row].any()
        assert first // LENGTH == (first + len(sequence) - 1) // LENGTH, "within one chunk"
        begins_anew = bool(rollout.episode_start[first, row])
        assert bool(batch.episode_start[place]) == begins_anew
        assert begins_anew or first % LENGTH == 0
        if not begins_anew:
            assert batch.state[0][place].item() == -sequence[0]


@pytest.mark.parametrize("valid", [None, holes()], ids=["all valid", "holes"])
@pytest.mark.parametrize("size", [1, 20, 40, 1000])
@pytest.mark.parametrize("is_shuffled", [False, True])
def test_every_valid_sample_once_in_whole_sequences(valid, size, is_shuffled):
    rollout, targets = numbered(valid)
    samples = samples_of(rollout, targets, PPOConfig())
    assert isinstance(samples, SequenceSamples)
    order = torch.randperm(samples.num_units, generator=torch.Generator().manual_seed(2)) if is_shuffled else None
    batches = list(samples.minibatches(size, order))
    for batch in batches:
        assert_whole(batch, rollout)
        assert torch.equal(batch.obs["number"].squeeze(-1), batch.value)
        assert torch.equal(batch.returns, batch.value)
    seen = torch.cat([batch.value for batch in batches]).sort().values
    assert torch.equal(seen, rollout.value[rollout.valid].sort().values)
    assert torch.equal(samples.batch.value.sort().values, seen)


def test_minibatches_are_as_many_and_as_large_as_without_memory():
    rollout, targets = numbered()
    sizes = [len(batch) for batch in samples_of(rollout, targets, PPOConfig()).minibatches(29)]
    assert len(sizes) == 4
    assert all(abs(size - 29) <= LENGTH for size in sizes)


@pytest.mark.parametrize("size", [1, 10, 33, 500])
def test_micro_batches_keep_sequences_whole(size):
    rollout, targets = numbered(holes())
    (minibatch,) = samples_of(rollout, targets, PPOConfig()).minibatches(1000)
    parts = list(pieces(minibatch, size))
    for part in parts:
        assert_whole(part, rollout)
    assert torch.equal(torch.cat([p.value for p in parts]).sort().values, minibatch.value.sort().values)
    assert len(parts) == 1 if size == 500 else len(parts) > 1


def test_nothing_is_cut_without_a_reason():
    starts = torch.zeros(STEPS, 1, dtype=torch.bool)
    runs = split(starts, torch.ones_like(starts), Chunks(STEPS, LENGTH))
    assert runs.length.tolist() == [6, 6, 6, 5]
    assert split(starts, torch.ones_like(starts), Chunks(STEPS, STEPS)).length.tolist() == [STEPS]


def test_padding_is_what_a_table_would_waste():
    rollout, targets = numbered()
    samples = samples_of(rollout, targets, PPOConfig())
    lengths = samples.runs.length.tolist()
    assert samples.padding == pytest.approx(1 - sum(lengths) / (len(lengths) * max(lengths)))
    assert 0 < samples.padding < 1


def test_chunks():
    assert Chunks(10, 4).first_steps == [0, 4, 8]
    assert Chunks(10, 4, burn_in=3).state_steps == [0, 1, 5]
    assert Chunks(10, 4, burn_in=99).state_steps == [0, 0, 0]
    assert [len(Chunks(steps, 4)) for steps in (1, 4, 5, 8)] == [1, 1, 2, 2]
