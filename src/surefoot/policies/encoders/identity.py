"""The observation itself, flattened."""

from torch import Tensor

from surefoot.core.config import PolicyConfig
from surefoot.core.errors import PolicyError
from surefoot.core.parts import PartSettings
from surefoot.core.records import Obs
from surefoot.core.specs import ArraySpec, ObsSpec
from surefoot.policies.encoders import Encoder, encoders
from surefoot.policies.native_parts import Plain, PlanBuilder


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
        return [{"key": "", "layers": []}]
