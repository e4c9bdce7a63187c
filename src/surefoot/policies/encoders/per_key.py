"""One encoder a key, concatenated in the order of the keys."""

import torch
from torch import Tensor, nn

from surefoot.core.config import EncoderConfig, PolicyConfig
from surefoot.core.errors import PolicyError
from surefoot.core.records import Obs
from surefoot.core.specs import ObsSpec
from surefoot.policies.encoders import Encoder, build_encoder, encoders


@encoders.register("dict")
class DictEncoder(Encoder):
    """`policy.encoders` says how each key is encoded; keys it does not name are `auto`."""

    def __init__(self, spec: ObsSpec, config: EncoderConfig, policy: PolicyConfig) -> None:
        super().__init__(spec, config, policy)
        if not isinstance(spec, dict):
            raise PolicyError("the dict encoder takes a dict observation; set policy.encoder to auto")
        self.keys = list(spec)
        parts = [build_encoder(part, policy.encoders.get(key, EncoderConfig()), policy) for key, part in spec.items()]
        self.output_size = sum(part.output_size for part in parts)
        self.parts = nn.ModuleList(parts)

    def forward(self, obs: Obs) -> Tensor:
        assert isinstance(obs, dict)
        features = [part(obs[key]) for key, part in zip(self.keys, self.parts, strict=True)]
        return torch.cat(features, dim=1)
