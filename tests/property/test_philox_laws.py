import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from surefoot.philox import Stream, permutations, uniforms, words

seeds = st.integers(0, 2**63 - 1)
streams = st.sampled_from(Stream)


@given(seeds, streams, st.integers(1, 6), st.integers(1, 6), st.integers(1, 9))
def test_a_row_does_not_know_how_many_rows_there_are(seed, stream, rows, more, count):
    few = words(seed, [3, 4], np.arange(rows), count, stream)
    many = words(seed, [3, 4], np.arange(rows + more), count, stream)
    assert np.array_equal(few, many[:, :rows])


@given(seeds, streams, st.integers(0, 2**40), st.integers(1, 5), st.integers(1, 9))
def test_a_step_does_not_know_what_was_drawn_before(seed, stream, first, steps, count):
    together = words(seed, np.arange(first, first + steps), [0, 1], count, stream)
    for i in range(steps):
        assert np.array_equal(together[i : i + 1], words(seed, [first + i], [0, 1], count, stream))


@given(seeds, streams, st.integers(1, 9), st.integers(1, 9))
def test_more_draws_begin_with_the_fewer(seed, stream, count, more):
    assert np.array_equal(
        words(seed, [0], [0], count + more, stream)[..., :count], words(seed, [0], [0], count, stream)
    )


@given(seeds, streams, st.integers(0, 2**32 - 3), st.integers(0, 1000))
def test_every_coordinate_matters(seed, stream, step, row):
    other_stream = Stream((stream + 1) % len(Stream))
    here = words(seed, [step], [row], 4, stream)
    elsewhere = [
        words(seed ^ 1, [step], [row], 4, stream),
        words(seed ^ (1 << 40), [step], [row], 4, stream),
        words(seed, [step + 1], [row], 4, stream),
        words(seed, [step], [row + 1], 4, stream),
        words(seed, [step], [row], 4, other_stream),
    ]
    assert all(not np.array_equal(here, there) for there in elsewhere)


@given(seeds, streams)
def test_uniforms_are_below_one_and_cover_the_interval(seed, stream):
    drawn = uniforms(seed, np.arange(16), np.arange(16), 8, stream)
    assert drawn.shape == (16, 16, 8)
    assert drawn.dtype == np.float32
    assert drawn.min() >= 0
    assert drawn.max() < 1
    counts = np.histogram(drawn, bins=8, range=(0, 1))[0]
    # 2048 draws, 256 a bin with deviation 15.
    assert np.abs(counts - 256).max() < 6 * 15


@given(seeds, st.integers(0, 2**31), st.integers(1, 5), st.integers(1, 300))
def test_permutations_are_permutations(seed, update, epochs, size):
    orders = permutations(seed, update, epochs, size)
    assert orders.shape == (epochs, size)
    assert (np.sort(orders, axis=1) == np.arange(size)).all()


@given(seeds, st.integers(0, 2**31), st.integers(30, 300))
def test_permutations_differ_between_epochs_updates_and_seeds(seed, update, size):
    orders = [
        *permutations(seed, update, 3, size),
        *permutations(seed, update + 1, 3, size),
        *permutations(seed + 1, update, 3, size),
    ]
    assert len({order.tobytes() for order in orders}) == 9
    # The number of epochs does not change the ones that come first.
    assert np.array_equal(permutations(seed, update, 2, size), np.array(orders[:2]))
