import numpy as np

from surefoot.philox import Stream, philox, uniforms, words

from .cases import Case, golden

# The case's note has the counter as (step, env_id, stream, draw). DESIGN S13 says (draw, step, row, stream), and that
# is what `words` lays out; the generator itself, which the vectors test, knows nothing of the layout.


@golden("philox4x32_10")
def test_known_answers(case: Case):
    for (counter, key), expected in zip(case.given["ctr_key"], case.expect["out"], strict=True):
        out = philox([int(word, 16) for word in counter], tuple(int(word, 16) for word in key))
        assert [f"{int(word):08x}" for word in out] == expected


@golden("philox4x32_10")
def test_the_10000th_number_of_the_cpp_standard(case: Case):
    # Four numbers a counter, so it is the last word of counter 2499.
    expected = case.expect["cpp26_philox4x32_default_seed_20111115_10000th_with_this_counter_layout"]
    assert int(philox((2499, 0, 0, 0), (20111115, 0))[3]) == expected
    # In our layout the first word counts draws: number 10000 of (step 0, row 0, stream 0) is the same.
    assert int(words(20111115, [0], [0], 10_000, Stream.ACTION)[0, 0, -1]) == expected


@golden("philox4x32_10")
def test_uniforms_take_the_upper_24_bits(case: Case):
    drawn = uniforms(0, [0], [0], 4, Stream.ACTION)[0, 0]
    assert drawn.dtype == np.float32
    case.agrees(drawn, "uniform24_of_first")


@golden("philox4x32_10")
def test_the_counter_is_draw_step_row_stream(case: Case):
    seed = 0x299F31D0_A4093822
    drawn = words(seed, [7, 8], [3, 4, 5], 6, Stream.EVALUATION)
    assert drawn.shape == (2, 3, 6)
    for word in range(6):
        direct = philox((word // 4, 8, 5, int(Stream.EVALUATION)), (0xA4093822, 0x299F31D0))
        assert drawn[1, 2, word] == direct[word % 4]
