"""One gradient step of the learner that training uses, and of the readable one, from the same samples.

Samples at a kink are left out: where a slope jumps, rounding decides which of two gradients is computed, and both are
right. A relu whose sum is 1e-8 in one implementation is -1e-8 in another that adds in a different order. The losses do
not notice, but this sample's gradient flows through the unit in one of them only.
"""

import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from surefoot.compose import build_learner
from surefoot.data.records import Batch, Learned, Rollout, Targets
from surefoot.learning.terms import Losses, Objective
from surefoot.native.kernels import readable_only
from surefoot.policies.policy import Policy
from surefoot.rollout.minibatches import FlatSamples, map_batch
from surefoot.rollout.samples import Samples, samples_of
from surefoot.rollout.sequences import SequenceSamples
from surefoot.settings.config import Config, PPOConfig
from surefoot.settings.layers import rebuilt
from surefoot.verification.legs import Leg, path, readable
from surefoot.verification.nudges import TOLERANCE, nudged_policy, nudged_targets, sensitivity
from surefoot.verification.recording import by_name, recording
from surefoot.verification.report import Findings
from surefoot.verification.rounding import LEARNING, ROUNDING

NUDGES = 6
MOST_AT_A_KINK = 0.2
"""Share of the samples that may lie at a kink; images meet many: of the frames of Breakout, one in eight does."""
_SUM, _NORM = ROUNDING / TOLERANCE, LEARNING / TOLERANCE
"""Least relative error of losses, and of the norm, whose squares PyTorch adds in float32 over all weights."""
GRADIENTS, LOSSES = "gradients", "losses"
FIRST, CLIPPED = "first minibatch", "first minibatch, clipped"
_BOUNDS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("relu", "leaky_relu", "abs"), ()),
    **dict.fromkeys(("clamp", "clip"), ("min", "max")),
    "clamp_min": ("min",),
    "clamp_max": ("max",),
}
"""The arguments at which the slope of an operation jumps; none for those with a kink at 0."""
_CHOICES = ("minimum", "maximum")
"""Operations whose slope jumps where their arguments become equal."""
EDGE = 8
"""A sample is at a kink if it lies within this many times the distance that rounding moves it."""
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
    """One gradient step with all samples of a leg, or some of them, as its only minibatch.

    The samples are those that the learner draws, in units that stay whole: single samples, or sequences.

    `moves` says whether old log-probs and values are moved: they equal the new ones in a first minibatch, so that
    nothing would be clipped.
    """

    def __init__(self, leg: Leg, config: Config, moves: bool = False) -> None:
        size = config.rollout.num_envs * config.rollout.num_steps
        self._config = rebuilt(config, {"ppo.epochs": 1, "ppo.batch_size": size})
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
        with path(is_readable):
            learner = build_learner(config, policy, self._objective)
            with recording(learner) as steps:
                measured = learner._run_epochs(samples, self._knobs)
            learned = measured.summary(samples, policy, self._knobs, {})
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


class KinkWatch(TorchFunctionMode):
    """Records how far the inputs of all operations with a kink are from it; only inputs with a gradient matter.

    PPO's losses compare numbers with the same numbers clamped. Where nothing is clamped the two are equal, and the
    slope does not jump.
    """

    def __init__(self) -> None:
        super().__init__()
        self.distances: list[Tensor] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, name = kwargs or {}, getattr(func, "__name__", "")
        names = _BOUNDS.get(name)
        if names is not None and args[0].requires_grad:
            given = dict(zip(names, args[1:], strict=False)) | {name: kwargs[name] for name in names if name in kwargs}
            bounds = [bound for bound in given.values() if bound is not None] if names else [0.0]
            self.distances += [args[0].detach() - bound for bound in bounds]
        elif name in _CHOICES and args[0].requires_grad:
            distance = (args[0] - args[1]).detach()
            self.distances.append(distance.masked_fill(distance == 0, torch.inf))
        return func(*args, **kwargs)


def kink_distances(compute: Callable[[], Any]) -> list[Tensor]:
    """The distances from all kinks in a computation, in the order in which they were met."""
    watch = KinkWatch()
    with watch:
        compute()
    return watch.distances


def at_a_kink(num_samples: int, here: list[Tensor], nudged: Sequence[list[Tensor]]) -> Tensor:
    """Which samples `[B]` are at a kink, from their distances and those of nudged copies of the computation."""
    found = torch.zeros(num_samples, dtype=torch.bool)
    for distance, *others in zip(here, *nudged, strict=True):
        if len(distance) == num_samples:  # a kink of the weights themselves is the same on both paths
            moved = torch.stack([(other - distance).abs() for other in others]).amax(0).view(num_samples, -1)
            reach = EDGE * moved.amax(1, keepdim=True)
            found |= (distance.view(num_samples, -1).abs() <= reach).any(1)
    return found


def compare_first_step(findings: Findings, reference: Leg, config: Config, clips: bool) -> None:
    """Compare losses and gradients of the reference's samples, without the samples at a kink.

    With `clips`, the old log-probs and values are moved, so that half of the samples are clipped.
    """
    what = CLIPPED if clips else FIRST
    with readable_only():
        first = FirstStep(reference, config, clips)
        nudged = [first.nudged(seed) for seed in range(NUDGES)]
        kept = _kept_units(findings, first, nudged)
    if not len(kept):
        findings.uncovered(GRADIENTS, what, "every sequence has a sample at a kink")
        return
    ours = first.take(first.given, kept, is_readable=False)
    expected = first.take(first.given, kept, is_readable=True)
    others = [first.take(given, kept, is_readable=True) for given in nudged]
    for name, loss in expected.losses.items():
        moves = torch.stack([other.losses[name] - loss for other in others])
        least = (_NORM if name == GRAD_NORM else _SUM) * loss.abs().clamp(min=1)
        apart = (ours.losses[name] - loss) / sensitivity(moves, least)
        findings.within(LOSSES, f"{name}, {what}", apart, 0, TOLERANCE)
    for name, gradient in expected.gradient.items():
        moves = torch.stack([other.gradient[name] - gradient for other in others])
        apart = (ours.gradient[name] - gradient) / sensitivity(moves, gradient.abs())
        findings.within(GRADIENTS, what, apart, 0, TOLERANCE)


def _kept_units(findings: Findings, first: FirstStep, nudged: list[Given]) -> Tensor:
    """The units without a sample at a kink: gradients flow through all samples of a sequence.

    Some come several times to make up for those left out, because some kernels only run in large batches.
    """
    batch = first.batch(first.given)
    here, *there = (
        kink_distances(partial(first.losses, given, first.batch(given))) for given in (first.given, *nudged)
    )
    unit_of, kinked = first.unit_of_samples(batch), at_a_kink(len(batch), here, there)
    left_out = torch.isin(unit_of, unit_of[kinked])
    with_others = "" if batch.batch_sizes is None else f", with their sequences {int(left_out.sum()):,},"
    note = f"samples{with_others} are left out: rounding decides their slope"
    findings.count(
        GRADIENTS, "samples at a kink", int(kinked.sum()), len(batch), note, int(MOST_AT_A_KINK * len(batch))
    )
    units, lengths = torch.arange(first.num_units), unit_of.bincount()
    kept = units[~torch.isin(units, unit_of[kinked])]
    kept = kept.repeat(math.ceil(len(batch) / max(1, int(lengths[kept].sum()))))
    return kept[lengths[kept].cumsum(0) <= len(batch)]
