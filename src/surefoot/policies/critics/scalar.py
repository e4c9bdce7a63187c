"""One number per state, trained with a (clipped) squared error on raw or normalized returns."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from surefoot.core.config import NormalizeConfig, PolicyConfig
from surefoot.policies.critics import Critic, ValueTargets, critics
from surefoot.policies.native_parts import Plain, PlanBuilder
from surefoot.policies.networks import orthogonal_
from surefoot.policies.normalizer import RunningNormalizer


def clipped_value_loss(prediction: Tensor, old: Tensor, target: Tensor, clip: float | None) -> Tensor:
    """Mean of max((v - R)^2, (v_clipped - R)^2), v_clipped within `clip` of the old value."""
    if clip is None:
        return functional.mse_loss(prediction, target)
    clipped = old + (prediction - old).clamp(-clip, clip)
    return torch.maximum((prediction - target).square(), (clipped - target).square()).mean()


@critics.register("scalar")
class ScalarCritic(Critic):
    """A linear head. With return normalization it predicts in units of the return's std (PopArt, S11)."""

    def __init__(self, latent_size: int, config: PolicyConfig, normalize: NormalizeConfig) -> None:
        super().__init__(latent_size, config, normalize)
        self.head = nn.Linear(latent_size, 1)
        self.returns = RunningNormalizer() if normalize.returns else None
        if config.orthogonal_init:
            orthogonal_(self.head, 1.0)

    def forward(self, latent: Tensor) -> Tensor:
        prediction: Tensor = self.head(latent)
        return prediction.squeeze(-1)

    def value(self, prediction: Tensor) -> Tensor:
        return prediction if self.returns is None else self.returns.decode(prediction)

    def loss(self, prediction: Tensor, targets: ValueTargets) -> Tensor:
        old, target = targets.old_value, targets.returns
        if self.returns is not None:
            old, target = self.returns(old), self.returns(target)
        return clipped_value_loss(prediction, old, target, targets.clip)

    @torch.no_grad()
    def absorb(self, returns: Tensor) -> None:
        """Update the statistics, then rescale the head to keep raw predictions unchanged (van Hasselt et al. 2016)."""
        if self.returns is None:
            return
        old_shift, old_scale = self.returns.shift.clone(), self.returns.scale.clone()
        self.returns.absorb(returns)
        shift, scale = self.returns.shift, self.returns.scale
        self.head.weight.mul_(old_scale / scale)
        self.head.bias.mul_(old_scale).add_(old_shift - shift).div_(scale)

    def native(self, plan: PlanBuilder) -> Plain:
        returns = "" if self.returns is None else plan.part("normalizer", self.returns)["normalizer"]
        return {"kind": "scalar", "layer": plan.linear(self.head), "returns": returns}
