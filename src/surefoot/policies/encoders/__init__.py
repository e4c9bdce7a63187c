"""Encoders turn a prepared observation into features `[B, output_size]`; one file an encoder."""

from torch import Tensor, nn

from surefoot.core.config import EncoderConfig, PolicyConfig
from surefoot.core.records import Obs
from surefoot.core.registry import Registry
from surefoot.core.specs import ArraySpec, ObsSpec


class Encoder(nn.Module):
    """Base of encoders: built from what it sees and how it is configured."""

    output_size: int

    def __init__(self, spec: ObsSpec, config: EncoderConfig, policy: PolicyConfig) -> None:
        super().__init__()

    def forward(self, obs: Obs) -> Tensor:
        """Features of a batch."""
        raise NotImplementedError


encoders: Registry[Encoder] = Registry("encoder", "surefoot.policies.encoders", "policy.encoder")


def build_encoder(spec: ObsSpec, config: EncoderConfig, policy: PolicyConfig) -> Encoder:
    """The configured encoder; `auto` takes conv for images, dict for dicts, identity for the rest."""
    kind = config.kind
    if kind == "auto":
        kind = "dict" if isinstance(spec, dict) else _automatic(spec)
    return encoders[kind](spec, config, policy)


def _automatic(spec: ArraySpec) -> str:
    return "conv" if spec.kind == "image" else "identity"
