"""The native learner learns from observations of all kinds what PyTorch's learner does."""

import pytest
import torch

from surefoot.core.specs import ArraySpec, ObsSpec
from surefoot.native.kernels import set_kernel_threads
from tests.learning_math.both_learners import assert_alike, case

VECTOR = ArraySpec("box", (3,), "float32")
PLACE = ArraySpec("discrete", (), "int64", sizes=(5,), start=(0,))
PLACES = ArraySpec("multi_discrete", (3,), "int64", sizes=(2, 4, 3), start=(0, 0, 0))
SWITCHES = ArraySpec("multi_binary", (4,), "int64")
IMAGE = ArraySpec("image", (9, 8, 3), "uint8")
DEPTH = ArraySpec("box", (10, 7), "float32")
SMALL = {"kind": "conv", "channels": [3, 5], "kernels": [3, 2], "strides": [2, 1], "features": 6}


@pytest.mark.parametrize(
    "obs",
    [PLACE, PLACES, SWITCHES, {"place": PLACE, "joints": VECTOR, "places": PLACES, "switches": SWITCHES}],
    ids=["discrete", "multi_discrete", "multi_binary", "dict"],
)
def test_observations_that_pytorch_prepares(obs: ObsSpec) -> None:
    mixed = case(obs, normalize={"obs": True, "obs_clip": 1.5})
    assert_alike(mixed.learn("native"), mixed.learn("torch"))


def conv(channels: list[int], kernels: list[int], strides: list[int]) -> dict[str, object]:
    return {"kind": "conv", "channels": channels, "kernels": kernels, "strides": strides, "features": 6}


@pytest.mark.parametrize(
    ("spec", "encoder"),
    [
        (IMAGE, SMALL),
        (ArraySpec("image", (3, 9, 8), "uint8"), SMALL),
        (DEPTH, SMALL),
        (ArraySpec("box", (1, 1), "float32"), conv([3], [1], [1])),
        (ArraySpec("box", (5, 5), "float32"), conv([2], [5], [3])),  # the kernel is the image
        (ArraySpec("box", (11, 8), "float32"), conv([1, 2], [2, 1], [3, 2])),  # strides skip pixels
        (ArraySpec("image", (4, 20, 23), "uint8"), conv([33, 7, 4], [5, 3, 2], [2, 1, 1])),
        (ArraySpec("box", (40, 36), "float32"), conv([4, 18], [3, 4], [1, 2])),  # more than 256 pixels and terms
    ],
    ids=["HxWxC", "CxHxW", "HxW", "1x1", "kernel=image", "stride>kernel", "odd", "large"],
)
def test_convolutions(spec: ArraySpec, encoder: dict[str, object]) -> None:
    images = case(spec, encoder=encoder, normalize={"obs": True}, share_trunk=True)
    assert_alike(images.learn("native"), images.learn("torch"))


@pytest.mark.parametrize("memory", ["none", "gru"])
def test_images_beside_other_observations(memory: str) -> None:
    """Separate bodies with encoders of their own, and pieces of minibatches."""
    encoders = {"camera": SMALL, "depth": SMALL, "joints": {"kind": "mlp", "layers": [4]}}
    obs = {"camera": IMAGE, "joints": VECTOR, "place": PLACE, "depth": DEPTH}
    settings = {"activation": "elu", "memory": memory}
    mixed = case(
        obs, {"micro_batch_size": 10, "sequence_state": "recomputed"}, {"obs": True}, encoders=encoders, **settings
    )
    assert_alike(mixed.learn("native", 2), mixed.learn("torch", 2))


def test_threads_do_not_change_a_bit() -> None:
    images = case({"camera": IMAGE, "depth": DEPTH}, encoders={"depth": SMALL}, ppo={"batch_size": 64})
    images.steps = 40
    found = []
    for threads in (1, 2, 3, 7):
        set_kernel_threads(threads)
        found.append(images.learn("native"))
    set_kernel_threads(1)
    for other in found[1:]:
        assert all(torch.equal(found[0][name], other[name]) for name in other)
