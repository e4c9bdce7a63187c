"""One number per state, trained with a (clipped) squared error on raw or normalized returns."""

import torch
from torch import Tensor
from torch.nn import functional

from surefoot.policies.critics import ValueTargets, critics
from surefoot.policies.critics.linear import LinearCritic
from surefoot.policies.native_parts import Plain, PlanBuilder
from surefoot.settings.config import NormalizeConfig, PolicyConfig


def clipped_value_loss(prediction: Tensor, old: Tensor, target: Tensor, clip: float | None) -> Tensor:
    """Mean of max((v - R)^2, (v_clipped - R)^2), v_clipped within `clip` of the old value."""
    if clip is None:
        return functional.mse_loss(prediction, target)
    clipped = old + (prediction - old).clamp(-clip, clip)
    return torch.maximum((prediction - target).square(), (clipped - target).square()).mean()


@critics.register("scalar")
class ScalarCritic(LinearCritic):
    """The expected return."""

    def __init__(self, latent_size: int, config: PolicyConfig, normalize: NormalizeConfig) -> None:
        super().__init__(latent_size, 1, config, normalize)

    def forward(self, latent: Tensor) -> Tensor:
        prediction: Tensor = self.head(latent)
        return prediction.squeeze(-1)

    def expected(self, decoded: Tensor) -> Tensor:
        return decoded

    def loss(self, prediction: Tensor, targets: ValueTargets) -> Tensor:
        old, target = self.encoded(targets.old_value), self.encoded(targets.returns)
        return clipped_value_loss(prediction, old, target, targets.clip)

    def native(self, plan: PlanBuilder) -> Plain:
        return {"kind": "scalar"} | self.native_head(plan)
