"""Encoders turn a prepared observation into features `[B, output_size]`; one file per encoder."""

from torch import Tensor, nn

from surefoot.data.records import Obs
from surefoot.data.specs import ArraySpec, ObsSpec
from surefoot.policies.native_parts import Plain, PlanBuilder, unknown
from surefoot.settings.config import PolicyConfig
from surefoot.settings.parts import PartSettings, chosen
from surefoot.settings.registry import AUTO, Registry


class Encoder(nn.Module):
    """Base class of encoders: built from the observation spec, the encoder's settings and the policy config."""

    output_size: int

    def __init__(self, spec: ObsSpec, settings: PartSettings, policy: PolicyConfig) -> None:
        super().__init__()

    def forward(self, obs: Obs) -> Tensor:
        """Features of a batch."""
        raise NotImplementedError

    def native(self, plan: PlanBuilder) -> list[Plain]:
        """For the native core: kind and settings for each observation, by key ('' for a single observation)."""
        raise unknown("encoder", self)


encoders: Registry[Encoder] = Registry(
    "encoder", "surefoot.policies.encoders", "policy.encoder", "Encoder", automatic=("conv", "dict", "identity")
)


def build_encoder(spec: ObsSpec, settings: PartSettings, policy: PolicyConfig) -> Encoder:
    """The configured encoder; `auto` selects conv for images, dict for dicts, and identity for others."""
    if settings.kind == AUTO:
        kind = "dict" if isinstance(spec, dict) else _automatic(spec)
        settings = chosen(settings, "surefoot.policies.encoders", kind)
    return encoders[settings.kind](spec, settings, policy)


def _automatic(spec: ArraySpec) -> str:
    return "conv" if spec.kind == "image" else "identity"
