"""The learner: epochs over shuffled minibatches, one gradient step each."""

from dataclasses import replace

import torch

from surefoot.data.records import Batch, Knobs, Learned, Rollout, Targets
from surefoot.learning.gradient import GradientStep
from surefoot.learning.memory_metrics import memory_metrics
from surefoot.learning.obs_drift import absorb_obs
from surefoot.learning.terms import Objective
from surefoot.learning.watch import Measured, Watch, Watched, combined
from surefoot.philox import permutations
from surefoot.policies.policy import Policy
from surefoot.rollout.samples import Samples, acted, pieces
from surefoot.settings.config import Config


class Learner:
    """Improves a policy from rollouts; `update` counts them and seeds the shuffles."""

    description = "PyTorch"  # where it learns, for the log

    def __init__(self, policy: Policy, objective: Objective, gradient: GradientStep, config: Config) -> None:
        self.policy, self.objective, self.gradient, self.update = policy, objective, gradient, 0
        self._ppo, self._return_stats, self._seed = config.ppo, config.normalize.return_stats, config.train.seed

    # tour: learn
    def learn(self, rollout: Rollout, targets: Targets, knobs: Knobs) -> Learned:
        """Improve the policy, then its statistics."""
        samples = self.objective.samples(rollout, targets, self._ppo, self.policy)
        if self._return_stats == "current":
            self.policy.critic.absorb(acted(samples.batch).returns)
        measured = self._run_epochs(samples, knobs)
        if self._return_stats == "previous":
            self.policy.critic.absorb(acted(samples.batch).returns)
        # Only now: until here the policy uses the statistics that it acted with (S10, docs/semantics.md).
        metrics = targets.metrics | absorb_obs(self.policy, acted(samples.batch), rollout)
        self.update += 1
        return measured.summary(samples, self.policy, knobs, metrics | memory_metrics(rollout, samples, self.policy))

    def _run_epochs(self, samples: Samples, knobs: Knobs) -> Measured:
        """All epochs, or fewer if the KL divergence exceeds its target; at most one device sync per epoch."""
        config, watch = self._ppo, Watch()
        for order in torch.from_numpy(permutations(self._seed, self.update, config.epochs, samples.num_units)):
            samples.begin_epoch(self.policy)
            for minibatch in samples.minibatches(config.batch_size, order):
                watch.add(self._step(minibatch, knobs), minibatch.size / len(samples.batch))
            watch.end_epoch()
            if config.target_kl is not None and watch.kl() > config.target_kl:
                break
        return watch.measured()

    def _step(self, minibatch: Batch, knobs: Knobs) -> Watched:
        """One gradient step. Micro-batches are weighted by size, so that they add up to the full minibatch (S9)."""
        if self._ppo.advantage_norm == "minibatch":
            minibatch = replace(minibatch, advantage=minibatch.normalized_advantage)
        seen = []
        for piece in pieces(minibatch, self._ppo.micro_batch_size):
            share = minibatch.share_of(piece)
            losses = self.objective(self.policy, piece, knobs)
            self.gradient.add(losses.total, share)
            seen.append((share, losses.watched))
        return self.gradient.step(knobs, combined(seen))

    # tour: end
