"""Convolutions for images and depth maps."""

import math

import torch
from torch import Tensor, nn

from surefoot.core.config import EncoderConfig, PolicyConfig
from surefoot.core.errors import PolicyError
from surefoot.core.records import Obs
from surefoot.core.specs import ObsSpec
from surefoot.policies.encoders import Encoder, encoders
from surefoot.policies.encoders.identity import single
from surefoot.policies.networks import MLP


@encoders.register("conv")
class ConvEncoder(Encoder):
    """Conv layers with ReLU, then one linear layer to `features`. Takes HxW, HxWxC or CxHxW."""

    def __init__(self, spec: ObsSpec, config: EncoderConfig, policy: PolicyConfig) -> None:
        super().__init__(spec, config, policy)
        shape = single(spec, "conv").shape
        if len(shape) not in (2, 3):
            raise PolicyError(f"the conv encoder takes images of 2 or 3 axes, not shape {shape}")
        # The channel axis is the short one: 84x84x3 and 3x84x84 are both common.
        self._channels_last = len(shape) == 3 and shape[2] < shape[0]
        channels, *size = shape if len(shape) == 3 and not self._channels_last else _last_first(shape)
        layers: list[nn.Module] = []
        for width, kernel, stride in zip(config.channels, config.kernels, config.strides, strict=True):
            layers += [nn.Conv2d(channels, width, kernel, stride), nn.ReLU()]
            size = [(length - kernel) // stride + 1 for length in size]
            channels = width
        if min(size) < 1:
            raise PolicyError(
                f"an image of {shape} is too small for kernels {config.kernels} and strides"
                f" {config.strides}; use fewer or smaller layers in policy.encoder"
            )
        self.layers = nn.Sequential(*layers, nn.Flatten())
        self.project = MLP(channels * math.prod(size), (config.features,), policy.activation)
        self.output_size = config.features

    def forward(self, obs: Obs) -> Tensor:
        assert isinstance(obs, Tensor)
        image = obs.unsqueeze(1) if obs.dim() == 3 else obs
        if self._channels_last:
            image = torch.movedim(image, -1, 1)
        features: Tensor = self.project(self.layers(image))
        return features


def _last_first(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (1, *shape) if len(shape) == 2 else (shape[2], *shape[:2])
