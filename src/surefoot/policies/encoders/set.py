"""A set of things: one layer for every element, then the mean over the elements."""

import torch
from pydantic import Field
from torch import Tensor, nn

from surefoot.data.records import Obs
from surefoot.data.specs import ObsSpec
from surefoot.errors import PolicyError
from surefoot.policies.encoders import Encoder, encoders
from surefoot.policies.encoders.identity import single
from surefoot.policies.native_parts import Plain, PlanBuilder
from surefoot.policies.networks import MLP
from surefoot.settings.config import Count, PolicyConfig, Sizes
from surefoot.settings.parts import PartSettings


@encoders.register("set")
class SetEncoder(Encoder):
    """A linear layer with ReLU, the same for all elements; their mean; then linear layers (Zaheer et al. 2017).

    Observations are `[elements, numbers]`. The order of the elements does not matter.
    """

    class Settings(PartSettings):
        """The layer of the elements, and those after the mean."""

        features: Count = Field(32, description="outputs of the layer that all elements share")
        layers: Sizes = Field((32,), description="hidden sizes after the mean over the elements")

    def __init__(self, spec: ObsSpec, settings: Settings, policy: PolicyConfig) -> None:
        super().__init__(spec, settings, policy)
        shape = single(spec, "set").shape
        if len(shape) != 2:
            raise PolicyError(f"the set encoder requires observations [elements, numbers], not of shape {shape}")
        self._elements, self._numbers = shape
        self.element = nn.Linear(shape[1], settings.features)
        self.network = MLP(settings.features, settings.layers, policy.activation)
        self.output_size = self.network.output_size

    def forward(self, obs: Obs) -> Tensor:
        assert isinstance(obs, Tensor)
        features: Tensor = self.network(torch.relu(self.element(obs)).mean(1))
        return features

    def native(self, plan: PlanBuilder) -> list[Plain]:
        layers: list[str] = plan.part("network", self.network)
        sizes = {"elements": self._elements, "numbers": self._numbers, "features": self.element.out_features}
        return [{"key": "", "kind": "set", "element": plan.linear(self.element), **sizes, "layers": layers}]
