"""A multilayer perceptron over the flattened observation."""

from pydantic import Field
from torch import Tensor

from surefoot.data.records import Obs
from surefoot.data.specs import ObsSpec
from surefoot.policies.encoders import Encoder, encoders
from surefoot.policies.encoders.identity import single
from surefoot.policies.native_parts import Plain, PlanBuilder
from surefoot.policies.networks import MLP
from surefoot.settings.config import PolicyConfig, Sizes
from surefoot.settings.parts import PartSettings


@encoders.register("mlp")
class MLPEncoder(Encoder):
    """Hidden sizes from `layers`, the policy's activation."""

    class Settings(PartSettings):
        """The layers."""

        layers: Sizes = Field((64,), description="hidden sizes")

    def __init__(self, spec: ObsSpec, settings: Settings, policy: PolicyConfig) -> None:
        super().__init__(spec, settings, policy)
        self.network = MLP(single(spec, "mlp").size, settings.layers, policy.activation)
        self.output_size = self.network.output_size

    def forward(self, obs: Obs) -> Tensor:
        assert isinstance(obs, Tensor)
        features: Tensor = self.network(obs.reshape(obs.shape[0], -1))
        return features

    def native(self, plan: PlanBuilder) -> list[Plain]:
        return [{"key": "", "kind": "mlp", "layers": plan.part("network", self.network)}]
