"""Two critics with parameters of their own; the smaller expected return counts (Fujimoto et al. 2018)."""

from typing import Any

import torch
from pydantic import Field
from torch import Tensor, nn

from surefoot.errors import PolicyError
from surefoot.policies.critics import Critic, ValueTargets, critics
from surefoot.policies.native_parts import Plain, PlanBuilder
from surefoot.policies.networks import MLP, orthogonal_
from surefoot.settings.config import Critic as CriticSettings
from surefoot.settings.config import NormalizeConfig, PolicyConfig
from surefoot.settings.parts import PartSettings

COUNT = 2


@critics.register("twin")
class TwinCritic(Critic):
    """Two critics of any kind, each with its own trunk (unless the actor's is shared), loss and old predictions."""

    owns_trunk = True

    class Settings(PartSettings):
        """The kind of both critics."""

        of: CriticSettings = Field(PartSettings(kind="scalar"), description="kind and settings of both critics")

    def __init__(self, latent_size: int, config: PolicyConfig, normalize: NormalizeConfig) -> None:
        super().__init__(latent_size, config, normalize)
        settings = config.critic
        assert isinstance(settings, TwinCritic.Settings)
        own = config.model_copy(update={"critic": settings.of})
        hidden = () if config.share_trunk else config.sizes_of_critic
        self.trunks = nn.ModuleList(MLP(latent_size, hidden, config.activation) for _ in range(COUNT))
        if config.orthogonal_init:
            orthogonal_(self.trunks)
        size = self._trunk(0).output_size
        self.critics = nn.ModuleList(critics[settings.of.kind](size, own, normalize) for _ in range(COUNT))
        kind = type(self._critic(0))
        if kind.expected is Critic.expected:
            raise PolicyError(f"policy.critic.of: {kind.__name__} must define expected(decoded) to be one of twins")
        self.prediction_shape = (COUNT, *(self._critic(0).prediction_shape or ()))

    def forward(self, latent: Tensor) -> Tensor:
        return torch.stack([self._critic(i)(self._trunk(i)(latent)) for i in range(COUNT)], dim=1)

    def decode(self, prediction: Tensor) -> Tensor:
        return torch.stack([self._critic(i).decode(prediction[:, i]) for i in range(COUNT)], dim=1)

    def value(self, prediction: Tensor) -> Tensor:
        return self._values(prediction, "value").amin(dim=1)

    def expected(self, decoded: Tensor) -> Tensor:
        return self._values(decoded, "expected").amin(dim=1)

    def loss(self, prediction: Tensor, targets: ValueTargets) -> Tensor:
        """The mean of both losses, so that ppo.value_coef means the same as with one critic."""
        return torch.stack([self._critic(i).loss(prediction[:, i], self._own(targets, i)) for i in range(COUNT)]).mean()

    def metrics(self, decoded: Tensor) -> dict[str, float]:
        """Those of the critic that counts, state by state."""
        smaller = self._values(decoded, "expected").argmin(dim=1)
        return self._critic(0).metrics(decoded[torch.arange(len(decoded), device=decoded.device), smaller])

    def absorb(self, returns: Tensor) -> None:
        for i in range(COUNT):
            self._critic(i).absorb(returns)

    def part_of(self, parameter: str) -> str:
        return f"critic{int(parameter.split('.')[1]) + 1}"

    def native_values(self, plan: PlanBuilder) -> list[Plain]:
        return [
            {"critic": plan.part("critic", self._critic(i)), "trunk": plan.part("network", self._trunk(i))}
            for i in range(COUNT)
        ]

    def _own(self, targets: ValueTargets, index: int) -> ValueTargets:
        assert targets.old_prediction is not None  # the critic has a prediction_shape
        critic, old = self._critic(index), targets.old_prediction[:, index]
        return ValueTargets(targets.returns, critic.expected(old), targets.clip, old)

    def _values(self, predictions: Tensor, method: str) -> Tensor:
        return torch.stack([getattr(self._critic(i), method)(predictions[:, i]) for i in range(COUNT)], dim=1)

    def _critic(self, index: int) -> Critic:
        critic: Any = self.critics[index]
        return critic  # type: ignore[no-any-return]

    def _trunk(self, index: int) -> MLP:
        trunk: Any = self.trunks[index]
        return trunk  # type: ignore[no-any-return]
