"""The learner: epochs over shuffled minibatches, one clipped gradient step each."""

from dataclasses import replace

import torch
from torch import Tensor

from surefoot.core.config import NormalizeConfig, PPOConfig
from surefoot.core.moments import normalized
from surefoot.core.philox import permutations
from surefoot.core.records import Batch, Knobs, Learned, Rollout, Targets
from surefoot.learning.losses import ppo_losses
from surefoot.learning.memory_metrics import memory_metrics
from surefoot.learning.obs_drift import absorb_obs
from surefoot.learning.optimizer import GradientStep
from surefoot.learning.summary import KL, WATCHED, summarize, watched
from surefoot.policies.policy import Policy
from surefoot.rollout.samples import pieces, samples_of


class Learner:
    """Improves a policy from rollouts; `update` counts them and keys the shuffles."""

    def __init__(
        self, policy: Policy, gradient: GradientStep, ppo: PPOConfig, normalize: NormalizeConfig, seed: int
    ) -> None:
        self.policy, self.gradient, self.update = policy, gradient, 0
        self._ppo, self._return_stats, self._seed = ppo, normalize.return_stats, seed

    # tour: learn
    def learn(self, rollout: Rollout, targets: Targets, knobs: Knobs) -> Learned:
        """Epochs until the budget or the KL says stop; numbers leave the device once an epoch at most."""
        config, samples = self._ppo, samples_of(rollout, targets, self._ppo)
        batch = samples.batch
        if self._return_stats == "current":
            self.policy.critic.absorb(batch.returns)
        self.gradient.set_lr(knobs.lr)
        epochs: list[Tensor] = []
        for order in torch.from_numpy(permutations(self._seed, self.update, config.epochs, samples.num_units)):
            samples.begin_epoch(self.policy)
            seen = [
                self._step(minibatch, knobs) * (len(minibatch) / len(batch))
                for minibatch in samples.minibatches(config.batch_size, order)
            ]
            epochs.append(torch.stack(seen))
            if config.target_kl is not None and epochs[-1][:, KL].sum() > config.target_kl:
                break
        if self._return_stats == "previous":
            self.policy.critic.absorb(batch.returns)
        # Only now: until here the policy saw the numbers it acted on (S10).
        drift = absorb_obs(self.policy, batch, rollout)
        self.update += 1
        return summarize(epochs, samples, self.policy, knobs, drift | memory_metrics(rollout, samples, self.policy))

    def _step(self, minibatch: Batch, knobs: Knobs) -> Tensor:
        """One gradient step. Micro-batches weigh by their share, so that they add up to the one large batch (S9)."""
        if self._ppo.advantage_norm == "minibatch":
            minibatch = replace(minibatch, advantage=normalized(minibatch.advantage))
        seen = torch.zeros(len(WATCHED))
        for piece in pieces(minibatch, self._ppo.micro_batch_size):
            share = len(piece) / len(minibatch)
            output = self.policy(*piece.inputs)
            losses = ppo_losses(output, piece, self.policy.critic, knobs, self._ppo)
            self.gradient.add(losses.total, share)
            seen += watched(losses) * share
        return torch.cat((seen, self.gradient.step()))

    # tour: end
