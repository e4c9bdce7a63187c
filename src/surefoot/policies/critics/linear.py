"""Base class of critics with one linear layer, raw or in units of the return's std (PopArt, S11, docs/semantics.md)."""

import torch
from torch import Tensor, nn

from surefoot.policies.critics import Critic
from surefoot.policies.native_parts import Plain, PlanBuilder
from surefoot.policies.networks import orthogonal_
from surefoot.policies.normalizer import RunningNormalizer
from surefoot.settings.config import NormalizeConfig, PolicyConfig


class LinearCritic(Critic):
    """A linear head with some outputs. With return normalization, a prediction is in units of the return's std."""

    def __init__(self, latent_size: int, outputs: int, config: PolicyConfig, normalize: NormalizeConfig) -> None:
        super().__init__(latent_size, config, normalize)
        self.head = nn.Linear(latent_size, outputs)
        self.returns = RunningNormalizer() if normalize.returns else None
        if config.orthogonal_init:
            orthogonal_(self.head, 1.0)

    def decode(self, prediction: Tensor) -> Tensor:
        return prediction if self.returns is None else self.returns.decode(prediction)

    def encoded(self, raw: Tensor) -> Tensor:
        """Raw returns or decoded predictions, in the units of a prediction."""
        return raw if self.returns is None else self.returns(raw)

    @torch.no_grad()
    def absorb(self, returns: Tensor) -> None:
        """Update the statistics, then rescale the head to keep raw predictions unchanged (van Hasselt et al. 2016).

        A frozen head cannot be rescaled: then the statistics are frozen, too.
        """
        if self.returns is None or not (self.head.weight.requires_grad and self.head.bias.requires_grad):
            return
        old_shift, old_scale = self.returns.shift.clone(), self.returns.scale.clone()
        self.returns.absorb(returns)
        shift, scale = self.returns.shift, self.returns.scale
        self.head.weight.mul_(old_scale / scale)
        self.head.bias.mul_(old_scale).add_(old_shift - shift).div_(scale)

    def native_head(self, plan: PlanBuilder) -> Plain:
        """The names of its tensors, for the description of a critic in the native core."""
        returns = "" if self.returns is None else plan.part("normalizer", self.returns)["normalizer"]
        return {"layer": plan.linear(self.head), "returns": returns}
