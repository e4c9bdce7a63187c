import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.data.specs import ArraySpec, spec_from_json, spec_to_json

SPECS = {
    "box": ArraySpec("box", (2, 3), "float32", -1.0, 1.0),
    "bounds of each element": ArraySpec("box", (3,), "float32", (-1.0, -math.inf, 0.1), (1.0, 2.0, math.inf)),
    "unbounded": ArraySpec("box", (3,), "float32"),
    "scalar": ArraySpec("box", (), "float32", 0.0, math.inf),
    "image": ArraySpec("image", (84, 84, 3), "uint8", 0.0, 255.0),
    "discrete": ArraySpec("discrete", (), "int64", sizes=(4,), start=(-2,)),
    "far from 0": ArraySpec("discrete", (), "int64", sizes=(4,), start=(-(2**62),)),
    "multi-discrete": ArraySpec("multi_discrete", (2, 2), "int64", sizes=(2, 3, 4, 5), start=(0, 1, 0, 1)),
    "multi-binary": ArraySpec("multi_binary", (5,), "float32", 0.0, 1.0),
    "dict": {"arm/joint": ArraySpec("box", (2,), "float32"), "keys": ArraySpec("discrete", (), "int64", sizes=(2,))},
    "empty dict": {},
}


def through_json(spec):
    # Strict JSON: no bare Infinity, which other readers refuse.
    return spec_from_json(json.loads(json.dumps(spec_to_json(spec), allow_nan=False)))


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_json_round_trip(spec):
    assert through_json(spec) == spec


def test_the_order_of_keys_survives():
    spec = dict.fromkeys(("z", "a", "m"), SPECS["box"])
    assert list(through_json(spec)) == ["z", "a", "m"]


numbers = st.floats(allow_nan=False)


@settings(deadline=None, derandomize=True)
@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=5))
def test_bounds_survive_exactly(pairs):
    low, high = (tuple(part) for part in zip(*pairs, strict=True))
    spec = ArraySpec("box", (len(pairs),), "float32", low, high)
    assert through_json(spec) == spec


def test_numpy_bounds_survive():
    spec = ArraySpec("box", (1,), "float32", np.float32(-0.1), (np.float32(0.3),))
    read = through_json(spec)
    assert np.float32(read.low) == np.float32(-0.1)
    assert np.float32(read.high[0]) == np.float32(0.3)


def test_size_and_zeros():
    spec = SPECS["box"]
    assert spec.size == 6
    assert spec.zeros(4, 5).shape == (4, 5, 2, 3)
    assert spec.zeros(4).dtype == np.float32
    assert SPECS["scalar"].size == 1
    assert SPECS["image"].zeros(1).dtype == np.uint8


def test_bounds_have_the_shape_of_the_array():
    low, high = SPECS["box"].bounds()
    assert low.shape == high.shape == (2, 3)
    low, high = SPECS["bounds of each element"].bounds()
    assert low.tolist() == [-1.0, -math.inf, 0.1]
    assert high.tolist() == [1.0, 2.0, math.inf]
    assert SPECS["scalar"].bounds()[1].shape == ()


@pytest.mark.parametrize(
    ("name", "is_bounded"),
    [("box", True), ("bounds of each element", False), ("unbounded", False), ("scalar", False), ("image", True)],
)
def test_bounded_means_every_element_on_both_sides(name, is_bounded):
    assert SPECS[name].is_bounded is is_bounded
