"""No encoder: the observation is recorded, but no network reads it."""

from surefoot.data.specs import ObsSpec
from surefoot.errors import PolicyError
from surefoot.policies.encoders import Encoder, encoders
from surefoot.settings.config import PolicyConfig
from surefoot.settings.parts import PartSettings


@encoders.register("none")
class NoEncoder(Encoder):
    """For keys of Dict observations that are only recorded: they are neither normalized nor learned from."""

    def __init__(self, spec: ObsSpec, settings: PartSettings, policy: PolicyConfig) -> None:
        raise PolicyError("the encoder none is for keys of Dict observations (policy.encoders.<key>: none)")


def unread_keys(spec: ObsSpec, policy: PolicyConfig) -> frozenset[str]:
    """The keys of a Dict observation that no network reads."""
    if not isinstance(spec, dict):
        return frozenset()
    return frozenset(key for key in spec if key in policy.encoders and policy.encoders[key].kind == "none")
