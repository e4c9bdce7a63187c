import numpy as np
import pytest

from surefoot.philox import Stream, derived_seed, permutations, philox, uniforms, words


def reference(counter, key):
    """Philox4x32-10 in plain Python, as the paper's figure has it."""
    c, k = list(counter), list(key)
    for _ in range(10):
        low, high = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [(high >> 32) ^ c[1] ^ k[0], high & 0xFFFFFFFF, (low >> 32) ^ c[3] ^ k[1], low & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def test_against_plain_python():
    generator = np.random.default_rng(0)
    for _ in range(50):
        *counter, k0, k1 = (int(word) for word in generator.integers(0, 2**32, 6))
        assert [int(word) for word in philox(counter, (k0, k1))] == reference(counter, (k0, k1))


def test_counters_broadcast():
    drawn = philox((np.arange(3)[:, None], 7, np.arange(4), 1), (5, 6))
    assert all(word.shape == (3, 4) for word in drawn)
    for i in range(3):
        for j in range(4):
            assert [int(word[i, j]) for word in drawn] == reference((i, 7, j, 1), (5, 6))


def test_both_halves_of_the_seed_are_used():
    seed = 0x01234567_89ABCDEF
    drawn = words(seed, [9], [2], 3, Stream.WEIGHTS)[0, 0]
    assert drawn.tolist() == reference((0, 9, 2, 3), (0x89ABCDEF, 0x01234567))[:3]


def test_steps_beyond_32_bits_wrap_and_do_not_fail():
    assert np.array_equal(words(1, [2**32 + 5], [0], 4, Stream.ACTION), words(1, [5], [0], 4, Stream.ACTION))


def test_streams_keep_their_numbers():
    # A checkpoint is continued by the version that comes after: new streams are added at the end.
    assert [stream.value for stream in Stream] == list(range(len(Stream)))
    assert [stream.name for stream in Stream][:6] == [
        "ACTION",
        "ENV_SEED",
        "SHUFFLE",
        "WEIGHTS",
        "EVALUATION",
        "BOOTSTRAP",
    ]


@pytest.mark.parametrize("count", [0, 1, 4, 5])
def test_shapes(count):
    assert words(0, [1, 2, 3], [4, 5], count, Stream.ACTION).shape == (3, 2, count)
    assert uniforms(0, [1, 2, 3], [4, 5], count, Stream.ACTION).shape == (3, 2, count)


def test_uniforms_are_exact_in_float32_and_never_one():
    drawn = uniforms(3, np.arange(100), np.arange(10), 8, Stream.ACTION)
    scaled = drawn.astype(np.float64) * 2**24
    assert (scaled == np.round(scaled)).all()
    # Even the largest word stays below 1, where rounding 32 bits to float32 would not.
    assert np.float32((0xFFFFFFFF >> 8) * 2.0**-24) < 1


def test_permutations_of_nothing_and_of_one():
    assert permutations(0, 0, 2, 1).tolist() == [[0], [0]]
    assert permutations(0, 0, 2, 0).shape == (2, 0)


def test_every_order_of_three_is_equally_likely():
    orders = np.concatenate([permutations(0, update, 10, 3) for update in range(300)])
    _, counts = np.unique(orders, axis=0, return_counts=True)
    # 3000 draws of 6 orders, 500 each with deviation 20.
    assert len(counts) == 6
    assert np.abs(counts - 500).max() < 80


def test_derived_seeds_differ_by_row_stream_and_seed():
    seeds = {
        derived_seed(seed, row, stream)
        for seed in (0, 1, 2**40)
        for row in range(50)
        for stream in (Stream.ENV_SEED, Stream.EVALUATION)
    }
    assert len(seeds) == 300
    assert all(0 <= seed < 2**31 for seed in seeds)
