"""An encoder from outside the package, in one file; cpp/tests/radial_encoder.cpp is its native side."""

from typing import Any

import torch
from torch import Tensor, nn

from surefoot.data.records import Obs
from surefoot.data.specs import ObsSpec
from surefoot.policies.encoders import Encoder
from surefoot.policies.encoders.identity import single
from surefoot.policies.native_parts import Plain, PlanBuilder


class RadialEncoder(Encoder):
    """Radial basis functions: how near the observation is to centers, which are learned."""

    def __init__(self, spec: ObsSpec, settings: Any, policy: Any, num_centers: int = 3) -> None:
        super().__init__(spec, settings, policy)
        self.centers = nn.Parameter(torch.randn(num_centers, single(spec, "radial").size))
        self.output_size = num_centers

    def forward(self, obs: Obs) -> Tensor:
        assert isinstance(obs, Tensor)
        return (-(obs.flatten(1).unsqueeze(1) - self.centers).square().sum(-1)).exp()

    def native(self, plan: PlanBuilder) -> list[Plain]:
        centers, size = self.centers.shape
        return [{"key": "", "kind": "radial", "name": plan.name(self), "centers": centers, "size": size}]
