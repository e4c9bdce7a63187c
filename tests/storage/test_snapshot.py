"""Snapshots: all tensors come back, later changes do not reach them, and one NaN anywhere is noticed."""

import math

import pytest
import torch
from torch import Tensor

from surefoot.storage.snapshot import FlatTensors, go_back, snapshots


def tensors() -> dict[str, Tensor]:
    return {
        "weight": torch.arange(6, dtype=torch.float32).reshape(2, 3),
        "count": torch.tensor(7.0, dtype=torch.float64),
        "bias": torch.tensor([0.5, -2.0]),
        "none": torch.zeros(0, 4),
        "flags": torch.tensor([True, False]),
    }


def test_every_tensor_has_its_name_shape_and_dtype_and_does_not_change():
    own = tensors()
    copy = FlatTensors(own).copy()
    own["weight"].add_(1)
    own["count"].zero_()
    for name, expected in tensors().items():
        found = copy.tensors()[name]
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        assert torch.equal(found, expected), name


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(("name", "place"), [("weight", (1, 2)), ("count", ()), ("bias", (0,))])
def test_a_number_that_is_not_finite_is_noticed_wherever_it_is(wrong: float, name: str, place: tuple[int, ...]):
    assert FlatTensors(tensors()).copy().is_finite
    spoiled = tensors()
    spoiled[name][place] = wrong
    assert not FlatTensors(spoiled).copy().is_finite


class Counter:
    """Has a state, and no faster way back."""

    def __init__(self) -> None:
        self.steps = [3]

    def state(self) -> dict[str, list[int]]:
        return {"steps": self.steps}

    def load_state(self, state: dict[str, list[int]]) -> None:
        self.steps = state["steps"]


def test_parts_without_snapshots_go_back_through_a_copy_of_their_state():
    parts = {"first": Counter(), "second": Counter()}
    before = snapshots(parts)
    for part in parts.values():
        part.steps.append(4)
    go_back(parts, before, ["first"])
    assert [part.steps for part in parts.values()] == [[3], [3, 4]]
