"""Critics predict returns from features, own their loss, and decode predictions to raw values; one file per kind."""

from dataclasses import dataclass

from torch import Tensor, nn

from surefoot.errors import PolicyError
from surefoot.policies.native_parts import Plain, PlanBuilder, unknown
from surefoot.settings.config import NormalizeConfig, PolicyConfig
from surefoot.settings.registry import Registry


@dataclass(frozen=True)
class ValueTargets:
    """Training targets of a critic: raw returns, the raw values of the rollout, and the clip range around them."""

    returns: Tensor  # [B]
    old_value: Tensor  # [B]
    clip: float | None
    old_prediction: Tensor | None = None  # [B, ...] as the rollout stored it, for critics with a `prediction_shape`


class Critic(nn.Module):
    """Base class of critics; `config.critic` has its settings."""

    def __init__(self, latent_size: int, config: PolicyConfig, normalize: NormalizeConfig) -> None:
        super().__init__()

    owns_trunk = False
    """Whether the critic brings the trunk after encoder and memory itself; a shared trunk stays the actor's."""

    prediction_shape: tuple[int, ...] | None = None
    """Shape of one row's decoded prediction, for critics whose loss needs the old one; None if the value suffices."""

    def forward(self, latent: Tensor) -> Tensor:
        """The prediction, in the form that the loss of the critic expects."""
        raise NotImplementedError

    def decode(self, prediction: Tensor) -> Tensor:
        """A prediction `[B, *prediction_shape]` in raw units, for any return statistics (S11, docs/semantics.md)."""
        return prediction

    def value(self, prediction: Tensor) -> Tensor:
        """Expected return in raw units `[B]`."""
        return self.expected(self.decode(prediction))

    def expected(self, decoded: Tensor) -> Tensor:
        """Expected return `[B]` of a decoded prediction; needed for twins of critics that define `value` otherwise."""
        raise PolicyError(f"{type(self).__name__} must define expected(decoded)")

    def loss(self, prediction: Tensor, targets: ValueTargets) -> Tensor:
        """Mean loss over the batch."""
        raise NotImplementedError

    def metrics(self, decoded: Tensor) -> dict[str, float]:
        """Metrics of the decoded predictions that a rollout stored, by full name."""
        return {}

    def part_of(self, parameter: str) -> str:
        """The part of the network that a parameter belongs to, for metrics of its gradient."""
        return "critic"

    def absorb(self, returns: Tensor) -> None:
        """Merge the raw returns of a rollout into running statistics, if there are any."""

    def native(self, plan: PlanBuilder) -> Plain:
        """Kind, settings and tensor names of the critic in the native core; see docs/native.md."""
        raise unknown("critic", self)

    def native_values(self, plan: PlanBuilder) -> list[Plain]:
        """For the native core: the critics of which the smallest value counts, each with a trunk of its own or none."""
        return [{"critic": plan.part("critic", self), "trunk": []}]


critics: Registry[Critic] = Registry("critic", "surefoot.policies.critics", "policy.critic", "Critic")
