"""Critics predict returns from features, own their loss, and decode predictions to raw values; one file per kind."""

from dataclasses import dataclass

from torch import Tensor, nn

from surefoot.core.config import NormalizeConfig, PolicyConfig
from surefoot.core.registry import Registry
from surefoot.policies.native_parts import Plain, PlanBuilder, unknown


@dataclass(frozen=True)
class ValueTargets:
    """What a critic learns from: raw returns, the raw values of the rollout, and how far to move from them."""

    returns: Tensor  # [B]
    old_value: Tensor  # [B]
    clip: float | None
    old_prediction: Tensor | None = None  # [B, ...] as the rollout stored it, for critics with a `prediction_shape`


class Critic(nn.Module):
    """Base of critics; `config.critic` holds its own settings."""

    def __init__(self, latent_size: int, config: PolicyConfig, normalize: NormalizeConfig) -> None:
        super().__init__()

    prediction_shape: tuple[int, ...] | None = None
    """Of one row's decoded prediction, for critics whose loss needs the old one; None where the old value is enough."""

    def forward(self, latent: Tensor) -> Tensor:
        """The critic's own prediction, in whatever form its loss takes."""
        raise NotImplementedError

    def decode(self, prediction: Tensor) -> Tensor:
        """A prediction in raw units `[B, *prediction_shape]`, so that it holds when return statistics move (S11)."""
        return prediction

    def value(self, prediction: Tensor) -> Tensor:
        """Expected return in raw units `[B]`."""
        raise NotImplementedError

    def loss(self, prediction: Tensor, targets: ValueTargets) -> Tensor:
        """Mean loss over the batch."""
        raise NotImplementedError

    def absorb(self, returns: Tensor) -> None:
        """Merge the raw returns of a rollout into running statistics, if there are any."""

    def native(self, plan: PlanBuilder) -> Plain:
        """The critic's kind in the native core, with its settings and names of tensors; see docs/native.md."""
        raise unknown("critic", self)


critics: Registry[Critic] = Registry("critic", "surefoot.policies.critics", "policy.critic", "Critic")
