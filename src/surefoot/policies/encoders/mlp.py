"""A multilayer perceptron over the flattened observation."""

from torch import Tensor

from surefoot.core.config import EncoderConfig, PolicyConfig
from surefoot.core.records import Obs
from surefoot.core.specs import ObsSpec
from surefoot.policies.encoders import Encoder, encoders
from surefoot.policies.encoders.identity import single
from surefoot.policies.networks import MLP


@encoders.register("mlp")
class MLPEncoder(Encoder):
    """Hidden sizes from `layers`, the policy's activation."""

    def __init__(self, spec: ObsSpec, config: EncoderConfig, policy: PolicyConfig) -> None:
        super().__init__(spec, config, policy)
        self.network = MLP(single(spec, "mlp").size, config.layers, policy.activation)
        self.output_size = self.network.output_size

    def forward(self, obs: Obs) -> Tensor:
        assert isinstance(obs, Tensor)
        features: Tensor = self.network(obs.reshape(obs.shape[0], -1))
        return features
