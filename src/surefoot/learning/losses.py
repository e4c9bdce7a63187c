"""The losses of PPO as pure functions (Schulman et al. 2017); what they return stays on the device."""

from dataclasses import dataclass

import torch
from torch import Tensor

from surefoot.core.config import PPOConfig
from surefoot.core.records import Batch, Knobs
from surefoot.policies.critics import Critic, ValueTargets
from surefoot.policies.policy import PolicyOutput


@dataclass(frozen=True)
class Losses:
    """Means over a batch: `total` is what is minimized, the rest is watched."""

    total: Tensor
    policy: Tensor
    value: Tensor
    entropy: Tensor
    approx_kl: Tensor
    clip_fraction: Tensor


def approx_kl(log_ratio: Tensor) -> Tensor:
    """mean((r - 1) - log r): unbiased, and never negative (Schulman's k3)."""
    return (log_ratio.expm1() - log_ratio).mean()


# tour: losses
def clipped_surrogate(log_ratio: Tensor, advantage: Tensor, clip: float) -> Tensor:
    """-mean(min(r A, clip(r, 1 - e, 1 + e) A)), r the ratio of new to old probability."""
    ratio = log_ratio.exp()
    return -torch.minimum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage).mean()


def ppo_losses(output: PolicyOutput, batch: Batch, critic: Critic, knobs: Knobs, config: PPOConfig) -> Losses:
    """Surrogate, the critic's own loss, and the entropy bonus."""
    log_ratio = output.distribution.log_prob(batch.action) - batch.log_prob
    policy_loss = clipped_surrogate(log_ratio, batch.advantage, knobs.clip)
    targets = ValueTargets(batch.returns, batch.value, config.clip_value)
    value_loss = critic.loss(output.prediction, targets)
    with torch.set_grad_enabled(knobs.entropy_coef > 0):
        entropy = output.distribution.entropy().mean()
    total = policy_loss + config.value_coef * value_loss
    if knobs.entropy_coef > 0:
        total = total - knobs.entropy_coef * entropy
    with torch.no_grad():
        kl, outside = approx_kl(log_ratio), log_ratio.expm1().abs() > knobs.clip
    return Losses(total, policy_loss, value_loss, entropy, kl, outside.float().mean())


# tour: end
