"""One gradient step of a learner with all samples of a rollout, or some of them, as its only minibatch."""

from copy import deepcopy
from dataclasses import dataclass, replace
from operator import itemgetter

import torch
from torch import Tensor

from surefoot.compose import build_learner
from surefoot.data.records import Batch, Learned, Rollout, Targets
from surefoot.learning.gradient import GradientStep
from surefoot.learning.terms import Losses, Objective
from surefoot.policies.policy import Policy
from surefoot.rollout.minibatches import FlatSamples, map_batch
from surefoot.rollout.samples import Samples, samples_of
from surefoot.rollout.sequences import SequenceSamples
from surefoot.settings.config import Config, PPOConfig
from surefoot.settings.layers import build_config
from surefoot.verification.legs import Leg, path, readable
from surefoot.verification.nudges import nudged_policy, nudged_targets
from surefoot.verification.recording import by_name, recording

CLIP_FRACTION, GRAD_NORM = "clip_fraction", "grad_norm"
_FAR = 2.0
"""How far old log-probs and values are moved, relative to the clip range: half of the samples are clipped."""


@dataclass(frozen=True)
class Taken:
    """What a learner computed in its step."""

    gradient: dict[str, Tensor]
    """By the names of the weights, before transforms and clipping."""
    losses: dict[str, Tensor]


@dataclass(frozen=True)
class Given:
    """What a step starts from."""

    policy: Policy
    targets: Targets


class FirstStep:
    """The samples of a leg as the learner draws them, in units that stay whole: single samples, or sequences.

    `moves` says whether old log-probs and values are moved: they equal the new ones in a first minibatch, so that
    nothing would be clipped.
    """

    def __init__(self, leg: Leg, config: Config, moves: bool = False) -> None:
        size = config.rollout.num_envs * config.rollout.num_steps
        self._config = build_config(config.model_dump(mode="json"), {"ppo.epochs": 1, "ppo.batch_size": size})
        self._rollout = _moved(leg, config) if moves else leg.rollout
        self._knobs, self._objective = leg.knobs, Objective.of(config.ppo)
        self.given = Given(leg.policy, leg.targets)
        self.num_units = self._samples(self.given).num_units

    def nudged(self, seed: int) -> Given:
        """The same with every weight and target rounded once more."""
        return Given(nudged_policy(self.given.policy, seed), nudged_targets(self.given.targets, seed))

    def losses(self, given: Given, batch: Batch) -> Losses:
        """What the learner minimizes and watches."""
        return self._objective(given.policy, batch, self._knobs)

    def batch(self, given: Given) -> Batch:
        """All units as one batch."""
        samples = self._samples(given)
        samples.begin_epoch(given.policy)
        (batch,) = samples.minibatches(len(samples.batch), torch.arange(samples.num_units))
        return batch

    def take(self, given: Given, units: Tensor, is_readable: bool) -> Taken:
        """Let a new learner take the step with some of the units; a unit given twice counts twice."""
        config = readable(self._config) if is_readable else self._config
        policy, samples = deepcopy(given.policy), _chosen(self._samples(given), units)
        gradient = GradientStep(policy, config.optimizer, config.ppo.max_grad_norm)
        with path(is_readable):
            learner = build_learner(config, policy, self._objective, gradient)
            with recording(learner) as steps:
                watch = learner._run_epochs(samples, self._knobs)
            learned = watch.summary(samples, policy, self._knobs, {})
        losses = {name: torch.tensor([value], dtype=torch.float64) for name, value in losses_of(learned, config.ppo)}
        return Taken(by_name(steps[0].gradient, policy), losses)

    def unit_of_samples(self, batch: Batch) -> Tensor:
        """The unit that each sample of the batch of all units belongs to."""
        if batch.batch_sizes is None:
            return torch.arange(len(batch))
        samples = self._samples(self.given)
        assert isinstance(samples, SequenceSamples)
        by_length = samples.runs.length.argsort(descending=True, stable=True)
        runs_on = torch.arange(int(batch.batch_sizes[0])) < batch.batch_sizes[:, None]
        return by_length[runs_on.nonzero(as_tuple=True)[1]]

    def _samples(self, given: Given) -> Samples:
        return samples_of(self._rollout, given.targets, self._config.ppo)


def losses_of(learned: Learned, ppo: PPOConfig) -> list[tuple[str, float]]:
    """The loss of every term, and everything else that learners measure in minibatches."""
    named = {
        "surrogate loss": learned.policy_loss,
        "value loss": learned.value_loss,
        "entropy loss": -learned.entropy,
        "approx_kl": learned.approx_kl,
        CLIP_FRACTION: learned.clip_fraction,
        GRAD_NORM: learned.grad_norm,
    }
    own = {name: value for name, value in learned.metrics.items() if name.partition("/")[0] in ppo.terms}
    return list((named | own).items())


def _moved(leg: Leg, config: Config) -> Rollout:
    generator, rollout = torch.Generator().manual_seed(config.train.seed), leg.rollout
    shape, clip = rollout.log_prob.shape, config.ppo.clip_value
    by = _FAR * (2 * torch.rand((2, *shape), generator=generator) - 1)
    unit = float(leg.targets.returns.std()) if config.normalize.returns else 1.0
    value = rollout.value if clip is None else rollout.value + by[1] * clip * unit
    return replace(rollout, log_prob=rollout.log_prob + by[0] * leg.knobs.clip, value=value)


def _chosen(samples: Samples, units: Tensor) -> Samples:
    if not isinstance(samples, SequenceSamples):
        return FlatSamples(map_batch(itemgetter(units), samples.batch))
    chunk, row = samples.place
    samples.runs, samples.place, samples.num_units = samples.runs[units], (chunk[units], row[units]), len(units)
    return samples
