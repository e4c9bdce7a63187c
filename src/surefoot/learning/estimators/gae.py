"""Generalized advantage estimation (Schulman et al. 2016), with termination and truncation kept separate."""

import torch
from torch import Tensor

from surefoot.data.records import Rollout, Targets
from surefoot.learning.estimators import Estimator, estimators
from surefoot.learning.native_returns import gae_in_core, suits_core
from surefoot.native.kernels import faster_by
from surefoot.policies.critics import Critic
from surefoot.settings.config import PPOConfig
from surefoot.settings.parts import PartSettings


@faster_by(gae_in_core, suits_core)  # the same bits
def gae(
    rewards: Tensor,
    values: Tensor,
    last_values: Tensor,
    terminated: Tensor,
    truncated: Tensor,
    final_values: Tensor,
    gamma: float,
    gae_lambda: float,
    valid: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Advantages and returns, everything `[T, N]` but `last_values` `[N]`.

    A_t = d_t + gamma lambda A_{t+1}, d_t = r_t + gamma V_next - V_t. V_next is 0 if terminated, V(final_obs) if only
    truncated, else V(s_{t+1}); either ending cuts the trace (S2, docs/semantics.md). A step that is not valid has
    advantage 0 (S5).
    """
    terminated, truncated = terminated.bool(), truncated.bool()
    following = torch.cat((values[1:], last_values[None]))
    bootstrap = torch.where(truncated, final_values, following).masked_fill(terminated, 0)
    delta = rewards + gamma * bootstrap - values
    trace = torch.full_like(delta, gamma * gae_lambda).masked_fill(terminated | truncated, 0)
    if valid is not None:
        delta, trace = torch.where(valid.bool(), delta, 0), trace * valid.bool()
    advantages, carried = torch.empty_like(delta), torch.zeros_like(last_values)
    for t in reversed(range(len(rewards))):
        carried = torch.add(delta[t], trace[t] * carried, out=advantages[t])
    return advantages, advantages + values


@estimators.register("gae")
class GAE(Estimator):
    """GAE with `ppo.gamma` and `ppo.gae_lambda`."""

    def __init__(self, settings: PartSettings, ppo: PPOConfig) -> None:
        super().__init__(settings, ppo)
        self.discounts = (ppo.gamma, ppo.gae_lambda)

    def estimate(self, rollout: Rollout, critic: Critic) -> Targets:
        endings = (rollout.terminated, rollout.truncated, rollout.final_value)
        values = (rollout.value, rollout.last_value)
        return Targets(*gae(rollout.reward, *values, *endings, *self.discounts, rollout.valid))
