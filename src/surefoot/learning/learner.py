"""The learner: epochs over shuffled minibatches, one clipped gradient step each."""

from dataclasses import replace

import torch
from torch import Tensor

from surefoot.core.config import NormalizeConfig, PPOConfig
from surefoot.core.moments import explained_variance
from surefoot.core.philox import permutations
from surefoot.core.records import Batch, Knobs, Learned, Rollout, Targets
from surefoot.learning.advantage import normalized
from surefoot.learning.losses import ppo_losses
from surefoot.learning.optimizer import GradientStep
from surefoot.policies.policy import Policy
from surefoot.rollout.minibatches import flatten, minibatches


class Learner:
    """Improves a policy from rollouts; `update` counts them and keys the shuffles."""

    def __init__(
        self, policy: Policy, gradient: GradientStep, ppo: PPOConfig, normalize: NormalizeConfig, seed: int
    ) -> None:
        self.policy, self.gradient = policy, gradient
        self._ppo, self._return_stats, self._seed = ppo, normalize.return_stats, seed
        self.update = 0

    # tour: learn
    def learn(self, rollout: Rollout, targets: Targets, knobs: Knobs) -> Learned:
        """Epochs until the budget or the KL says stop; numbers leave the device once an epoch at most."""
        config, batch = self._ppo, flatten(rollout, targets)
        if self._return_stats == "current":
            self.policy.critic.absorb(batch.returns)
        self.gradient.set_lr(knobs.lr)
        orders = permutations(self._seed, self.update, config.epochs, len(batch))
        epochs: list[Tensor] = []
        for order in torch.from_numpy(orders):
            watched = [
                self._step(minibatch, knobs) * (len(minibatch) / len(batch))
                for minibatch in minibatches(batch, config.batch_size, order)
            ]
            epochs.append(torch.stack(watched).sum(0))
            if config.target_kl is not None and epochs[-1][_KL] > config.target_kl:
                break
        if self._return_stats == "previous":
            self.policy.critic.absorb(batch.returns)
        # Only now: until here the policy saw the numbers it acted on (S10).
        self.policy.absorb_obs(batch.obs)
        self.update += 1
        return self._learned(torch.stack(epochs), batch, knobs)

    def _step(self, minibatch: Batch, knobs: Knobs) -> Tensor:
        """One gradient step. Micro-batches weigh by their share, so that they add up to the one large batch (S9)."""
        if self._ppo.advantage_norm == "minibatch":
            everything = torch.ones_like(minibatch.advantage, dtype=torch.bool)
            minibatch = replace(minibatch, advantage=normalized(minibatch.advantage, everything))
        self.gradient.zero_grad()
        watched = torch.zeros(len(_WATCHED))
        for piece in minibatches(minibatch, self._ppo.micro_batch_size or len(minibatch)):
            share = len(piece) / len(minibatch)
            output = self.policy(piece.obs, piece.state, piece.episode_start, piece.action_mask)
            losses = ppo_losses(output, piece, self.policy.critic, knobs, self._ppo)
            (losses.total * share).backward()
            watched += torch.stack([getattr(losses, name).detach() for name in _WATCHED]) * share
        return torch.cat((watched, self.gradient.step()))

    # tour: end

    def _learned(self, epochs: Tensor, batch: Batch, knobs: Knobs) -> Learned:
        """Plain numbers: means over the epochs, but the KL of the last one, which is where the policy ended up."""
        means = epochs.mean(0).tolist()
        policy_loss, value_loss, entropy, _, clip_fraction, grad_norm, skipped = means
        return Learned(
            policy_loss=policy_loss,
            value_loss=value_loss,
            entropy=entropy,
            approx_kl=float(epochs[-1][_KL]),
            clip_fraction=clip_fraction,
            grad_norm=grad_norm,
            explained_variance=float(explained_variance(batch.value, batch.returns)),
            epochs=len(epochs),
            skipped_steps=round(skipped * len(epochs) * -(-len(batch) // self._ppo.batch_size)),
            lr=knobs.lr,
            clip=knobs.clip,
            entropy_coef=knobs.entropy_coef,
            std=self._mean_std(batch),
        )

    @torch.no_grad()
    def _mean_std(self, batch: Batch) -> float | None:
        few = next(minibatches(batch, self._ppo.batch_size))
        output = self.policy(few.obs, few.state, few.episode_start, few.action_mask)
        std = output.distribution.mean_std()
        return None if std is None else float(std)


_WATCHED = ("policy", "value", "entropy", "approx_kl", "clip_fraction")
_KL = _WATCHED.index("approx_kl")
