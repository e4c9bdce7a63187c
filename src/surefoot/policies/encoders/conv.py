"""Convolutions for images and depth maps."""

import math

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from surefoot.data.records import Obs
from surefoot.data.specs import ObsSpec
from surefoot.errors import PolicyError
from surefoot.policies.encoders import Encoder, encoders
from surefoot.policies.encoders.identity import single
from surefoot.policies.native_parts import Plain, PlanBuilder, UnknownToCoreError
from surefoot.policies.networks import MLP
from surefoot.settings.config import Count, PolicyConfig, Sizes
from surefoot.settings.parts import PartSettings


@encoders.register("conv")
class ConvEncoder(Encoder):
    """Conv layers with ReLU, then one linear layer to `features`. Accepts HxW, HxWxC or CxHxW, of any size."""

    class Settings(PartSettings):
        """The layers, and the size of the output."""

        channels: Sizes = Field((16, 32), description="channels of each layer")
        kernels: Sizes | None = Field(
            None, description="kernel size of each layer; null fits the image: 4 and then 3, at most 3 for small images"
        )
        strides: Sizes | None = Field(
            None, description="stride of each layer; null fits the image: 2, or 1 for small images"
        )
        features: Count = Field(64, description="size of the output")

        @model_validator(mode="after")
        def _same_length(self) -> "ConvEncoder.Settings":
            given = [sizes for sizes in (self.kernels, self.strides) if sizes is not None]
            if any(len(sizes) != len(self.channels) for sizes in given):
                raise ValueError("channels, kernels and strides must have the same number of entries")
            return self

    def __init__(self, spec: ObsSpec, settings: Settings, policy: PolicyConfig) -> None:
        super().__init__(spec, settings, policy)
        shape = single(spec, "conv").shape
        if len(shape) not in (2, 3):
            raise PolicyError(
                f"the conv encoder requires images with 2 or 3 axes, not shape {shape}; set policy.encoder to auto"
            )
        # The shorter axis is the channel axis: 84x84x3 and 3x84x84 are both common.
        self._channels_last = len(shape) == 3 and shape[2] < shape[0]
        channels, *size = shape if len(shape) == 3 and not self._channels_last else _last_first(shape)
        self._image = {"channels": channels, "height": size[0], "width": size[1]}
        windows = _fitting(settings, size)
        if windows is None:
            raise PolicyError(
                f"an image of shape {shape} is too small for kernels {settings.kernels} and strides"
                f" {settings.strides} of policy.encoder; leave them out, then they fit the image"
            )
        layers: list[nn.Module] = []
        for width, (kernel, stride) in zip(settings.channels, windows, strict=True):
            layers += [nn.Conv2d(channels, width, kernel, stride), nn.ReLU()]
            size = _reduced(size, kernel, stride)
            channels = width
        self.layers = nn.Sequential(*layers, nn.Flatten())
        self.project = MLP(channels * math.prod(size), (settings.features,), policy.activation)
        self.output_size = settings.features

    def forward(self, obs: Obs) -> Tensor:
        assert isinstance(obs, Tensor)
        image = obs.unsqueeze(1) if obs.dim() == 3 else obs
        if self._channels_last:
            image = torch.movedim(image, -1, 1)
        features: Tensor = self.project(self.layers(image))
        return features

    def native(self, plan: PlanBuilder) -> list[Plain]:
        *layers, flatten = self.layers
        plan.torch_module("layer", flatten, nn.Flatten)
        for activation in layers[1::2]:
            plan.torch_module("layer", activation, nn.ReLU)
        convolutions = plan.convolutions(layers[::2])
        if plan.learns and self._is_faster_in_torch():
            raise UnknownToCoreError("convolutions of this size are faster in PyTorch")
        image = {"kind": "conv", "size": [*self._image.values()], "channels_last": self._channels_last}
        return [{"key": ""} | image | convolutions | {"layers": plan.part("network", self.project)}]

    def _is_faster_in_torch(self) -> bool:
        """Whether the core would waste much of its work on padding: many weights, but few pixels that they meet.

        Per layer: the output, the gradient of the weights and the gradient of the input. The core pads them to whole
        vectors, and rows of outputs to rows of inputs. The limits are measured.
        """
        size, useful, padded = [self._image["height"], self._image["width"]], 0, 0
        for layer in list(self.layers)[:-1:2]:
            assert isinstance(layer, nn.Conv2d)
            kernel, stride = layer.kernel_size[0], layer.stride[0]
            rows, columns = (-(-length // stride) for length in size)
            size = _reduced(size, kernel, stride)
            pixels = (size[0] - 1) * columns + size[1]
            useful += 3 * layer.weight.numel() * math.prod(size)
            padded += layer.weight.numel() * (_whole_vectors(pixels) + pixels + _whole_vectors(rows * columns))
        return padded > 1.25 * useful + 1e6


def _fitting(settings: ConvEncoder.Settings, size: list[int]) -> list[tuple[int, int]] | None:
    """Kernel and stride of each layer: the usual ones, smaller ones for a small image, or None if neither fits."""
    count = len(settings.channels)
    usual = list(zip(settings.kernels or (4, *(3,) * (count - 1)), settings.strides or (2,) * count, strict=False))
    if _fits(usual, size):
        return usual
    left, small = size, []
    for layer in range(count):
        kernel = settings.kernels[layer] if settings.kernels else min(3, *left)
        stride = settings.strides[layer] if settings.strides else 1
        small.append((kernel, stride))
        left = [max(length, 1) for length in _reduced(left, kernel, stride)]
    return small if _fits(small, size) else None


def _fits(windows: list[tuple[int, int]], size: list[int]) -> bool:
    for kernel, stride in windows:
        if min(size) < kernel:
            return False
        size = _reduced(size, kernel, stride)
    return True


def _reduced(size: list[int], kernel: int, stride: int) -> list[int]:
    return [(length - kernel) // stride + 1 for length in size]


def _whole_vectors(count: int) -> int:
    return -(-count // 16) * 16


def _last_first(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (1, *shape) if len(shape) == 2 else (shape[2], *shape[:2])
