"""The text in a picture is readable and whole."""

import numpy as np
import pytest

from surefoot.watching.recording import LEAST_SIDE, drawn, shown_return

LINES = ["episode 12/20", "return -123456.7", "step 10,000"]


@pytest.mark.parametrize("shape", [(7, 7), (84, 84), (210, 160), (20, 1000), (1000, 20), (401, 601), (1080, 1920)])
def test_the_text_is_whole_in_pictures_of_every_size(shape):
    image = drawn(np.zeros((*shape, 3), np.uint8), LINES)
    assert image.width % 2 == image.height % 2 == 0, "codecs need even sides"
    rows, columns = np.nonzero(np.asarray(image).min(axis=2) > 200)
    assert rows.min() >= 2
    assert columns.min() >= 2
    assert rows.max() <= image.height - 3, "nothing is cut off"
    assert columns.max() <= image.width - 3
    heights = np.flatnonzero(np.diff(np.flatnonzero((np.asarray(image).min(axis=2) > 200).any(axis=1))) > 1)
    assert len(heights) == 2, "three lines, apart from each other"
    assert rows.max() - rows.min() >= 36, "12 pixels a line"


def test_small_pictures_are_enlarged_with_hard_edges():
    picture = np.random.default_rng(0).integers(0, 255, (84, 84, 3), dtype=np.uint8)
    image = np.asarray(drawn(picture, ["step 1"]))
    assert image.shape == (336, 336, 3)
    assert min(image.shape[:2]) >= LEAST_SIDE
    assert (image[-4:, -4:] == picture[-1, -1]).all()


def test_large_pictures_keep_their_pixels():
    picture = np.random.default_rng(0).integers(0, 255, (400, 600, 3), dtype=np.uint8)
    assert (np.asarray(drawn(picture, LINES))[200:] == picture[200:]).all()


def test_returns_have_few_digits():
    shown = [shown_return(value) for value in (0.0, 0.01234, 1.5, -19.449, 500.0, -1234.56)]
    assert shown == ["0.00", "0.0123", "1.50", "-19.45", "500.0", "-1234.6"]
