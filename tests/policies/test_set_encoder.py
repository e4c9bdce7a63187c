"""The set encoder: the order of the elements does not matter, and the core computes what PyTorch does."""

import pytest
import torch

from surefoot.data.specs import ArraySpec
from surefoot.errors import PolicyError
from surefoot.native.kernels import set_kernel_threads
from surefoot.policies.encoders import encoders
from surefoot.settings.config import PolicyConfig
from surefoot.settings.parts import settings_class
from tests.learning.both_learners import assert_alike, case
from tests.parity.test_native_policy import ACTIONS, NORMALIZE, assert_same, box, build, native

SET = ArraySpec("box", (6, 3), "float32")
FEATURES = {"kind": "set", "features": 7, "layers": [5]}


def made(shape: tuple[int, ...]) -> torch.nn.Module:
    settings = settings_class("surefoot.policies.encoders", "set")(kind="set")
    return encoders["set"](ArraySpec("box", shape, "float32"), settings, PolicyConfig())


def test_the_order_of_the_elements_does_not_matter() -> None:
    encoder, obs = made((6, 3)), torch.randn(4, 6, 3)
    torch.testing.assert_close(encoder(obs), encoder(obs[:, torch.randperm(6)]))


def test_other_shapes_are_refused() -> None:
    with pytest.raises(PolicyError, match="requires observations \\[elements, numbers\\], not of shape \\(3,\\)"):
        made((3,))


@pytest.mark.parametrize("layers", [(5,), (6, 4)])
def test_the_core_acts_alike(layers: tuple[int, ...]) -> None:
    settings = FEATURES | {"layers": layers}
    lone = build(box(6, 3), ACTIONS["gaussian"], NORMALIZE, encoder=settings, hidden=(12,))
    assert_same(lone, rows=51, copy=native(lone))
    both = build(
        {"things": box(6, 3), "joints": box(4)}, ACTIONS["categorical"], NORMALIZE, encoders={"things": settings}
    )
    assert_same(both, rows=7, copy=native(both))


@pytest.mark.parametrize("memory", ["none", "gru"])
def test_the_core_learns_alike_with_any_number_of_threads(memory: str) -> None:
    vector = ArraySpec("box", (4,), "float32")
    learning = case(
        {"things": SET, "joints": vector}, normalize={"obs": True}, encoders={"things": FEATURES}, memory=memory
    )
    found = []
    for threads in (1, 2, 3):
        set_kernel_threads(threads)
        found.append(learning.learn("native", 2))
    set_kernel_threads(1)
    assert all(torch.equal(found[0][name], one[name]) for one in found[1:] for name in one)
    assert_alike(found[0], learning.learn("torch", 2), 2e-5)


def test_the_layer_of_the_elements_learns() -> None:
    learning = case(SET, encoder=FEATURES)
    before = learning.build("native").policy.state_dict()
    after = learning.learn("native", 1)
    assert not torch.equal(before["actor_body.encoder.element.weight"], after["actor_body.encoder.element.weight"])
    assert not torch.equal(before["actor_body.encoder.element.bias"], after["actor_body.encoder.element.bias"])
