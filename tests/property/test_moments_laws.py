import itertools

import torch
from hypothesis import given
from hypothesis import strategies as st

from surefoot.data.moments import Moments, explained_variance, masked_mean, masked_std
from surefoot.policies.normalizer import RunningNormalizer

numbers = st.floats(-1e3, 1e3, allow_nan=False)
samples = st.lists(st.tuples(numbers, numbers), min_size=1, max_size=40)


def split(values: torch.Tensor, cuts: list[int]) -> list[torch.Tensor]:
    edges = [0, *sorted(min(cut, len(values)) for cut in cuts), len(values)]
    return [values[a:b] for a, b in itertools.pairwise(edges)]


def assert_same(merged: Moments, whole: Moments) -> None:
    """Equal to 1e-12 of the size of what was summed."""
    assert merged.count == whole.count
    size = (whole.mean.square() + whole.var).sqrt()
    assert ((merged.mean - whole.mean).abs() <= 1e-12 * size).all()
    assert ((merged.var - whole.var).abs() <= 1e-12 * size.square()).all()


@given(samples, st.lists(st.integers(0, 40), max_size=6), st.randoms(use_true_random=False))
def test_merged_moments_are_those_of_the_concatenation(values, cuts, shuffler):
    values = torch.tensor(values, dtype=torch.float64)
    parts = [Moments.of(part) for part in split(values, cuts)]  # some of them empty
    shuffler.shuffle(parts)
    while len(parts) > 1:  # and merged as any tree
        first, second = parts.pop(shuffler.randrange(len(parts))), parts.pop(shuffler.randrange(len(parts)))
        parts.insert(shuffler.randint(0, len(parts)), first.merge(second))
    assert_same(parts[0], Moments.of(values))


@given(samples, st.lists(st.integers(0, 40), max_size=6))
def test_a_normalizer_has_the_moments_of_all_it_absorbed(values, cuts):
    values = torch.tensor(values, dtype=torch.float64)
    normalizer = RunningNormalizer((2,))
    for part in split(values, cuts):
        normalizer.absorb(part)
    assert_same(Moments(normalizer.count, normalizer.mean, normalizer.var), Moments.of(values))


@given(samples)
def test_decoding_undoes_normalizing(values):
    values = torch.tensor(values, dtype=torch.float64)
    normalizer = RunningNormalizer((2,)).double()
    normalizer.absorb(values)
    torch.testing.assert_close(normalizer.decode(normalizer(values)), values, rtol=1e-9, atol=1e-9)


@given(samples, st.data())
def test_masked_means_are_means_of_what_is_left(values, data):
    values = torch.tensor(values, dtype=torch.float64)
    valid = torch.tensor([data.draw(st.booleans()) for _ in range(values.numel())]).view_as(values)
    if valid.sum() < 2:
        return
    scrambled = torch.where(valid, values, torch.nan)
    torch.testing.assert_close(masked_mean(scrambled, valid), values[valid].mean(), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(masked_std(scrambled, valid), values[valid].std(), rtol=1e-7, atol=1e-7)


@given(samples)
def test_explained_variance_is_one_for_the_truth_and_zero_for_a_constant(values):
    target = torch.tensor(values, dtype=torch.float64)[:, 0]
    if target.var(unbiased=False) < 1e-3:
        return
    assert explained_variance(target, target) == 1
    assert explained_variance(target + 7, target).item() > 1 - 1e-9, "a constant offset is not noticed"
    assert abs(explained_variance(torch.zeros_like(target), target).item()) < 1e-9
