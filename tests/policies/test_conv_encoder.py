"""The conv encoder fits its kernels to the image."""

from typing import Any

import pytest
import torch
from torch import nn

from surefoot.data.specs import ArraySpec
from surefoot.errors import ConfigError, PolicyError
from surefoot.policies.encoders.conv import ConvEncoder
from surefoot.settings.config import PolicyConfig
from surefoot.settings.layers import build_config


def encoder(shape: tuple[int, ...], **settings: Any) -> ConvEncoder:
    given = ConvEncoder.Settings(kind="conv", **settings)
    return ConvEncoder(ArraySpec("image", shape, "uint8", 0.0, 255.0), given, PolicyConfig())


def windows(one: ConvEncoder) -> list[tuple[int, int]]:
    return [(layer.kernel_size[0], layer.stride[0]) for layer in one.layers if isinstance(layer, nn.Conv2d)]


@pytest.mark.parametrize("shape", [(8, 8), (8, 8, 3), (3, 84, 84), (210, 160, 3), (1, 9, 8), (12, 30, 1)])
def test_images_of_usual_size_have_the_layers_that_they_always_had(shape):
    """Checkpoints depend on them."""
    assert windows(encoder(shape)) == [(4, 2), (3, 2)]
    assert windows(encoder(shape, kernels=[4, 3], strides=[2, 2])) == [(4, 2), (3, 2)]


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((7, 7, 3), [(3, 1), (3, 1)]),
        ((1, 7, 7), [(3, 1), (3, 1)]),
        ((7, 7, 1), [(3, 1), (3, 1)]),
        ((5, 20), [(3, 1), (3, 1)]),
        ((4, 4, 3), [(3, 1), (2, 1)]),
        ((3, 3, 2), [(3, 1), (1, 1)]),
        ((2, 2), [(2, 1), (1, 1)]),
        ((1, 1, 1), [(1, 1), (1, 1)]),
    ],
)
def test_small_images_fit(shape, expected):
    one = encoder(shape)
    assert windows(one) == expected
    assert one(torch.rand(5, *shape)).shape == (5, 64)


def test_what_is_given_is_kept_and_the_rest_fits():
    assert windows(encoder((7, 7, 3), channels=[8, 8, 8])) == [(3, 1), (3, 1), (3, 1)]
    assert windows(encoder((84, 84, 4), channels=[8, 8, 8])) == [(4, 2), (3, 2), (3, 2)]
    assert windows(encoder((7, 7, 3), kernels=[2, 2])) == [(2, 2), (2, 2)]
    assert windows(encoder((7, 7, 3), kernels=[5, 3])) == [(5, 1), (3, 1)]
    assert windows(encoder((7, 7, 3), strides=[2, 1])) == [(3, 2), (3, 1)]


@pytest.mark.parametrize("given", [{"kernels": [4, 3], "strides": [2, 2]}, {"kernels": [8, 4]}])
def test_kernels_that_do_not_fit_are_refused(given):
    with pytest.raises(PolicyError, match=r"shape \(7, 7, 3\) is too small for kernels .*; leave them out"):
        encoder((7, 7, 3), **given)


def test_every_layer_has_a_kernel_and_a_stride():
    with pytest.raises(ConfigError, match="must have the same number of entries"):
        build_config({"policy.encoder": {"kind": "conv", "channels": [8], "kernels": [3, 3]}})
