"""What goes into a checkpoint comes out of it, bit for bit and type for type."""

import json
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from surefoot.errors import CheckpointError, CheckpointMismatchError
from surefoot.storage.saved import Saved
from surefoot.storage.state import ModuleState
from surefoot.training.checkpoint import read_checkpoint, write_checkpoint
from tests.training.states import assert_same

TORCH_DTYPES = [
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint64, torch.uint32, torch.uint16, torch.uint8),
    *(torch.bool, torch.complex64),
]
NUMPY_DTYPES = ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?", "c8"]


def round_trip(folder: Path, state: dict[str, Any]) -> dict[str, Any]:
    write_checkpoint(folder / "state.safetensors", state)
    return read_checkpoint(folder / "state.safetensors")


@pytest.mark.parametrize("dtype", TORCH_DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,), (2, 0, 3)], ids=str)
def test_tensors_of_every_dtype(tmp_path, dtype, shape):
    count = int(np.prod(shape)) * dtype.itemsize
    noise = torch.arange(count, dtype=torch.uint8) * 37 % (2 if dtype is torch.bool else 251)
    tensor = noise.view(dtype).reshape(shape) if count else torch.empty(shape, dtype=dtype)
    assert_same(round_trip(tmp_path, {"tensor": tensor}), {"tensor": tensor})


@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
def test_numpy_arrays_and_scalars_keep_their_dtype(tmp_path, dtype):
    array = (np.arange(6).reshape(2, 3) % 2).astype(dtype)
    state = {"array": array, "scalar": array[0, 1], "no axes": np.array(1, dtype), "empty": np.empty((0, 2), dtype)}
    assert_same(round_trip(tmp_path, state), state)


def test_special_numbers(tmp_path):
    numbers = [np.nan, -np.inf, np.inf, -0.0, 5e-324, 1e308, 0.1]
    state = {"floats": numbers, "array": np.array(numbers), "tensor": torch.tensor(numbers)}
    restored = round_trip(tmp_path, state)
    assert_same(restored, state)
    assert np.signbit(restored["floats"][3])


def test_plain_values(tmp_path):
    state = {
        "none": None,
        "flags": [True, False],
        "large": [2**127 + 1, -(2**128), 2**64],
        "text": ["", 'ünïcödé ☃ \x00 " \\ \n', "__tensor__"],
        "nothing": {"list": [], "dict": {}, "tuple": ()},
        "": {"": 1},
        "nested": {"a": [{"b": [torch.ones(1), None, {"c": np.float32(0.1)}]}]},
    }
    assert_same(round_trip(tmp_path, state), state)


def test_a_generator_goes_on_where_it_was(tmp_path):
    generator = np.random.default_rng(4)
    generator.random(7)
    state = round_trip(tmp_path, {"rng": generator.bit_generator.state})
    restored = np.random.default_rng(0)
    restored.bit_generator.state = state["rng"]
    assert restored.random() == generator.random()


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3).T,
        np.asfortranarray(np.arange(6).reshape(2, 3)),
        np.arange(8)[::2],
        np.arange(4)[::-1],
        np.broadcast_to(np.float32(2), (3, 2)),
    ],
    ids=["transposed", "Fortran", "strided", "reversed", "broadcast"],
)
def test_arrays_need_not_be_contiguous(tmp_path, array):
    assert_same(round_trip(tmp_path, {"array": array}), {"array": array})


def test_foreign_byte_order_becomes_ours(tmp_path):
    restored = round_trip(tmp_path, {"array": np.arange(3, dtype=">i4")})["array"]
    assert_same(restored, np.arange(3, dtype="i4"))


def test_a_file_that_could_not_be_read_is_not_written(tmp_path):
    path = tmp_path / "state.safetensors"
    with pytest.raises(CheckpointError, match=r"has \d+ bytes, more than the maximum of 16777216"):
        write_checkpoint(path, {"history": "x" * 17_000_000})
    assert os.listdir(tmp_path) == []
    write_checkpoint(path, {"history": np.zeros(17_000_000, dtype=np.uint8)})
    assert len(read_checkpoint(path)["history"]) == 17_000_000


def test_views_and_shared_memory(tmp_path):
    whole = torch.arange(12.0).reshape(3, 4)
    state = {"whole": whole, "again": whole, "column": whole[:, 1], "turned": whole.T, "wide": whole[:1].expand(5, 4)}
    assert_same(round_trip(tmp_path, state), state)


def test_parameters_are_stored_without_their_graph(tmp_path):
    parameter = torch.nn.Parameter(torch.ones(2))
    restored = round_trip(tmp_path, {"parameter": parameter * 2})["parameter"]
    assert not restored.requires_grad
    assert restored.tolist() == [2.0, 2.0]


def test_names_with_dots_do_not_collide(tmp_path):
    state = {"a": {"b": torch.zeros(1), "c": [torch.ones(1)]}, "a.b": torch.full((1,), 2.0), "a.c.0": np.array([3.0])}
    assert_same(round_trip(tmp_path, state), state)


def test_numpy_strings_are_strings(tmp_path):
    assert round_trip(tmp_path, {"text": np.str_("abc")}) == {"text": "abc"}


def test_what_is_read_can_be_changed(tmp_path):
    state = round_trip(tmp_path, {"tensor": torch.zeros(2), "array": np.zeros(2)})
    state["tensor"][0], state["array"][0] = 1.0, 1.0


@pytest.mark.parametrize(
    "value",
    [object(), 1j, np.array(["text"]), np.array([None]), np.zeros(1, "c16"), np.longdouble(1)],
    ids=["object", "complex", "strings", "objects", "complex128", "longdouble"],
)
def test_what_cannot_be_stored_is_named(tmp_path, value):
    path = tmp_path / "state.safetensors"
    write_checkpoint(path, {"old": 1})
    with pytest.raises(CheckpointError, match=r"collector\.envs\.1\.own"):
        write_checkpoint(path, {"collector": {"envs": [None, {"own": value}]}})
    assert read_checkpoint(path) == {"old": 1}
    assert os.listdir(tmp_path) == [path.name]


leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**130), 2**130),
    st.floats(),
    st.text(st.characters(exclude_categories=["Cs"])),
    arrays.arrays(st.sampled_from(NUMPY_DTYPES), arrays.array_shapes(min_dims=0)),
    arrays.from_dtype(np.dtype("f4")),
    st.builds(torch.full, st.just((2, 1)), st.floats(-1, 1)),
)
states = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    st.recursive(leaves, lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text("ab.0"), part, max_size=3)),
    max_size=4,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(state=states)
def test_any_state(tmp_path, state):
    assert_same(round_trip(tmp_path, state), state)


def test_the_file_is_a_safetensors_file_that_others_can_read(tmp_path):
    from safetensors import safe_open

    path = tmp_path / "state.safetensors"
    write_checkpoint(path, {"policy": {"head.weight": torch.ones(2, 3)}, "step": 5})
    with safe_open(path, "pt") as file:
        assert list(file.keys()) == ["policy.head.weight"]
        assert torch.equal(file.get_tensor("policy.head.weight"), torch.ones(2, 3))
        assert file.metadata()["format"] == "surefoot"
        assert json.loads(file.metadata()["state"])["step"] == 5


def test_a_new_file_replaces_the_old_one_whole(tmp_path):
    path = tmp_path / "state.safetensors"
    write_checkpoint(path, {"tensor": torch.ones(1000)})
    before = path.stat().st_ino
    with path.open("rb") as reader:
        write_checkpoint(path, {"tensor": torch.zeros(1)})
        length = struct.unpack("<Q", reader.read(8))[0]
        # Who opened the old file goes on reading the old file.
        assert len(reader.read()) == length + 4000
    assert path.stat().st_ino != before
    assert os.listdir(tmp_path) == [path.name]


def test_a_folder_that_is_not_there_is_the_callers_to_handle(tmp_path):
    with pytest.raises(OSError, match="No such file"):
        write_checkpoint(tmp_path / "nowhere" / "state.safetensors", {})


def test_what_does_not_fit_is_listed_in_full():
    module = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 1))
    state = {"0.weight": torch.zeros(3, 5), "0.bias": torch.zeros(3), "1.bias": torch.zeros(2), "extra": torch.zeros(1)}
    with pytest.raises(CheckpointMismatchError) as caught:
        ModuleState(module, "policy").check_state(Saved(state))
    message = str(caught.value)
    assert "1.weight is missing" in message
    assert "extra is unknown" in message
    assert "0.weight has shape (3, 5), not (3, 2)" in message
    assert "1.bias has shape (2,), not (1,)" in message
    assert "0.bias" not in message


def test_what_fits_passes():
    module = torch.nn.Linear(2, 3)
    ModuleState(module, "policy").check_state(Saved(dict(module.state_dict())))


EXACT: list[object] = [
    {1: (2, 3)},
    {"a": (1, (2.5, None)), "b": [], "c": ()},
    {(0, 1): "pair", None: 0, True: 1.5, 2.5: "half", b"k": 0},
    {"set": {1, 2, 3}, "frozen": frozenset({(1, 2)}), "empty": set()},
    {"bytes": b"\x00\xff", "none": b""},
    {"__tensor__": "not one"},
    {"__pairs__": [[1, 2]]},
    {"__tuple__": [1]},
    {"large": 2**128 - 1, "minus": -(2**200), "negative zero": -0.0},
    {"\ud800": np.arange(3)},
    {1: {2: {3: np.float32(1.5)}}},
]


@pytest.mark.parametrize("own", EXACT, ids=range(len(EXACT)))
def test_states_of_envs_keep_their_types(tmp_path, own):
    restored = round_trip(tmp_path, {"envs": [{"own": own}]})["envs"][0]["own"]
    assert_same(restored, own)
    assert repr(restored) == repr(own), "keys and the types of all parts"


def test_nan_stays_nan(tmp_path):
    assert np.isnan(round_trip(tmp_path, {"own": (float("nan"), 1)})["own"][0])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (object(), "is a object"),
        (1j, "is a complex"),
        (np.array(["a"]), "is a ndarray of dtype <U1"),
        (np.array([None]), "is a ndarray of dtype object"),
        (np.longdouble(1), "is a longdouble of dtype float128"),
        (10**5000, "is an integer of 16610 bits; the maximum is 8192"),
        (torch.zeros(2).to_sparse(), "is a Tensor"),
        (torch.zeros(2, device="meta"), "is a Tensor"),
        (range(3), "is a range"),
    ],
    ids=range(9),
)
def test_what_cannot_be_kept_is_refused_by_its_path(tmp_path, value, message):
    with pytest.raises(CheckpointError, match=rf"^envs\.0\.own\.deep\.1 {message}"):
        write_checkpoint(tmp_path / "state.safetensors", {"envs": [{"own": {"deep": [0, value]}}]})
    with pytest.raises(CheckpointError, match=r"^the key envs\.0\.<object .*> is a object"):
        write_checkpoint(tmp_path / "state.safetensors", {"envs": {0: {object(): 1}}})
    assert not list(tmp_path.iterdir())
