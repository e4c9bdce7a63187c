"""One encoder per key, concatenated in the order of the keys."""

import torch
from torch import Tensor, nn

from surefoot.data.records import Obs
from surefoot.data.specs import ObsSpec
from surefoot.errors import PolicyError
from surefoot.policies.encoders import Encoder, build_encoder, encoders
from surefoot.policies.native_parts import Plain, PlanBuilder
from surefoot.settings.config import PolicyConfig
from surefoot.settings.parts import PartSettings
from surefoot.settings.registry import AUTO


@encoders.register("dict")
class DictEncoder(Encoder):
    """`policy.encoders` selects the encoder of each key; other keys are `auto`."""

    def __init__(self, spec: ObsSpec, settings: PartSettings, policy: PolicyConfig) -> None:
        super().__init__(spec, settings, policy)
        if not isinstance(spec, dict):
            raise PolicyError("the dict encoder requires a dict observation; set policy.encoder to auto")
        self.keys = list(spec)
        automatic = PartSettings(kind=AUTO)
        parts = [build_encoder(part, policy.encoders.get(key, automatic), policy) for key, part in spec.items()]
        self.output_size = sum(part.output_size for part in parts)
        self.parts = nn.ModuleList(parts)

    def forward(self, obs: Obs) -> Tensor:
        assert isinstance(obs, dict)
        features = [part(obs[key]) for key, part in zip(self.keys, self.parts, strict=True)]
        return torch.cat(features, dim=1)

    def native(self, plan: PlanBuilder) -> list[Plain]:
        parts = zip(self.keys, self.parts, strict=True)
        return [described | {"key": key} for key, part in parts for described in plan.part("encoder", part)]
