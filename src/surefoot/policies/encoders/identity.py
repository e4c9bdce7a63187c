"""The observation itself, flattened."""

from torch import Tensor

from surefoot.data.records import Obs
from surefoot.data.specs import ArraySpec, ObsSpec
from surefoot.errors import PolicyError
from surefoot.policies.encoders import Encoder, encoders
from surefoot.policies.native_parts import Plain, PlanBuilder
from surefoot.settings.config import PolicyConfig
from surefoot.settings.parts import PartSettings


def single(spec: ObsSpec, kind: str) -> ArraySpec:
    """The spec of a single observation; a dict needs the dict encoder."""
    if isinstance(spec, dict):
        raise PolicyError(f"the {kind} encoder requires a single array, not a dict; set policy.encoder to dict")
    return spec


@encoders.register("identity")
class IdentityEncoder(Encoder):
    """Features = the elements of the observation."""

    def __init__(self, spec: ObsSpec, settings: PartSettings, policy: PolicyConfig) -> None:
        super().__init__(spec, settings, policy)
        self.output_size = single(spec, "identity").size

    def forward(self, obs: Obs) -> Tensor:
        assert isinstance(obs, Tensor)
        return obs.reshape(obs.shape[0], -1)

    def native(self, plan: PlanBuilder) -> list[Plain]:
        return [{"key": "", "kind": "identity"}]
