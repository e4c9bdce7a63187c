"""Quantiles of the return per state, by quantile regression (Dabney et al. 2018)."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from surefoot.policies.critics import ValueTargets, critics
from surefoot.policies.critics.linear import LinearCritic
from surefoot.policies.native_parts import Plain, PlanBuilder
from surefoot.settings.config import Count, NormalizeConfig, PolicyConfig
from surefoot.settings.parts import PartSettings
from surefoot.statistics.risk import cvar
from surefoot.telemetry import names

_EPSILON = 1e-12
_SAMPLES = 512
"""For metrics: sorting the quantiles of a whole rollout would take long."""
CLIPS = ("quantiles", "mean", "mean_and_spread")


def midpoints(count: int, device: torch.device | None = None) -> Tensor:
    """tau_i = (i + 1/2) / N."""
    return (torch.arange(count, device=device) + 0.5) / count


def quantile_huber(quantiles: Tensor, targets: Tensor, kappa: float) -> Tensor:
    """|tau - 1(u < 0)| H(u) / kappa with u = target - quantile and Huber's H: `[..., N, T]` for all pairs.

    The division by kappa is that of IQN (Dabney et al. 2018b, eq. 3), which QR-DQN does not have: the slope far from
    the target does not depend on kappa, and kappa 0 is the pinball loss.
    """
    error = targets.unsqueeze(-2) - quantiles.unsqueeze(-1)
    size = error.abs()
    if kappa > 0:
        size = torch.where(size <= kappa, error.square() * (0.5 / kappa), size - 0.5 * kappa)
    weight = (midpoints(quantiles.shape[-1], quantiles.device).unsqueeze(-1) - (error < 0).float()).abs()
    return weight * size


@critics.register("quantile")
class QuantileCritic(LinearCritic):
    """N quantiles of the return at (i + 1/2) / N; the value is their mean."""

    class Settings(PartSettings):
        """Settings of quantile regression."""

        num_quantiles: Count = Field(51, le=1024, description="number of quantiles")
        kappa: float = Field(
            1.0, ge=0, description="Huber threshold, in std of returns if they are normalized; 0 is the pinball loss"
        )
        clip: Literal["quantiles", "mean", "mean_and_spread"] = Field(
            "quantiles", description="what ppo.clip_value limits: each quantile, or the whole distribution's movement"
        )
        alpha: float = Field(0.05, gt=0, le=1, description="share of worst outcomes in the metric train/value_cvar")

    def __init__(self, latent_size: int, config: PolicyConfig, normalize: NormalizeConfig) -> None:
        settings = config.critic
        assert isinstance(settings, QuantileCritic.Settings)
        super().__init__(latent_size, settings.num_quantiles, config, normalize)
        self._settings, self.prediction_shape = settings, (settings.num_quantiles,)

    def forward(self, latent: Tensor) -> Tensor:
        prediction: Tensor = self.head(latent)
        return prediction

    def expected(self, decoded: Tensor) -> Tensor:
        return decoded.mean(-1)

    def loss(self, prediction: Tensor, targets: ValueTargets) -> Tensor:
        """Mean over samples and quantiles; clipped as the scalar critic's: the larger of both losses."""
        returns, kappa = self.encoded(targets.returns).unsqueeze(-1), self._settings.kappa
        loss = quantile_huber(prediction, returns, kappa).squeeze(-1)
        if targets.clip is None:
            return loss.mean()
        assert targets.old_prediction is not None  # the critic has a prediction_shape
        clipped = clipped_quantiles(prediction, self.encoded(targets.old_prediction), targets.clip, self._settings.clip)
        clipped_loss = quantile_huber(clipped, returns, kappa).squeeze(-1)
        if self._settings.clip == "quantiles":
            return torch.maximum(loss, clipped_loss).mean()
        return torch.maximum(loss.mean(-1), clipped_loss.mean(-1)).mean()

    def metrics(self, decoded: Tensor) -> dict[str, float]:
        """Means over some samples of the CVaR and the standard deviation of predictions, in units of the reward."""
        some = decoded[:: max(1, len(decoded) // _SAMPLES)]
        return {
            names.VALUE_CVAR: float(cvar(some.numpy(), self._settings.alpha).mean()),
            names.VALUE_SPREAD: float(some.std(-1, correction=0).mean()),
        }

    def native(self, plan: PlanBuilder) -> Plain:
        settings = self._settings
        numbers = {"num_quantiles": settings.num_quantiles, "kappa": settings.kappa}
        return {"kind": "quantile", **self.native_head(plan), **numbers, "clip": settings.clip}


def clipped_quantiles(new: Tensor, old: Tensor, clip: float, mode: str) -> Tensor:
    """Quantiles that moved by at most `clip`: each one, or their mean, or their mean and their standard deviation."""
    if mode == "quantiles":
        return old + (new - old).clamp(-clip, clip)
    mean, old_mean = new.mean(-1, keepdim=True), old.mean(-1, keepdim=True)
    moved = old_mean + (mean - old_mean).clamp(-clip, clip)
    if mode == "mean":
        return new + (moved - mean)
    deviation = new - mean
    spread, old_spread = (_spread(quantiles) for quantiles in (new, old))
    limited = (old_spread + (spread - old_spread).clamp(-clip, clip)).clamp(min=0)
    return moved + deviation * (limited / spread)


def _spread(quantiles: Tensor) -> Tensor:
    deviation = quantiles - quantiles.mean(-1, keepdim=True)
    return (deviation.square().mean(-1, keepdim=True) + _EPSILON).sqrt()
