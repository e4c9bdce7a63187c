"""The update after a native rollout against the reference's, which runs without the core."""

from copy import deepcopy

import torch
from torch import Tensor

from surefoot.core.config import Config, PPOConfig
from surefoot.learning.gradient import GradientStep
from surefoot.native.kernels import readable_only
from surefoot.verification.differences import magnitude
from surefoot.verification.first_step import CLIP_FRACTION, losses_of
from surefoot.verification.gradients import compare_first_step
from surefoot.verification.legs import Leg, Traveler, Update
from surefoot.verification.nudges import ROUNDINGS, TOLERANCE
from surefoot.verification.recording import by_name, flat_weights, learned_weights, statistics_of
from surefoot.verification.report import Findings
from surefoot.verification.rounding import LEARNING, ROUNDING, slack

KINKS = 2e-3
"""Allowed difference of weights, relative to how far they moved, and of the clip fraction, if rounding has less effect.

Samples at a kink cannot be left out of an update. If one changes sides, a minibatch has a slightly different gradient.
"""
MOMENTS = 1e-9
"""Relative error of float64 moments that are summed in a different order."""
GRADIENTS = 2
"""Number of legs whose gradients are compared: as they are, and with clipped samples."""
LOSSES, WEIGHTS, OPTIMIZER, STATISTICS = "losses", "weights", "optimizer", "normalizer statistics"
_STEP = 10.0
"""Rounding of a step, in roundings of the learning rate: several numbers are rounded before it is added to a weight."""
_TINY = 1e-30


def compare_learners(findings: Findings, fast: Traveler, ours: Leg, reference: Leg, config: Config, leg: int) -> None:
    """Everything that a learner computes; `leg` is the number of the leg."""
    why_not = fast.trainer.learner.why_not_native
    findings.fine(
        "learner", "against the readable", f"PyTorch, with kernels of the core: {why_not}" if why_not else "native"
    )
    _compare_targets(findings, ours, reference)
    if leg < GRADIENTS:
        compare_first_step(findings, reference, config, clips=leg > 0)
    _compare_losses(findings, ours, reference, config.ppo)
    _compare_optimizer(findings, ours, config)
    _compare_weights(findings, ours, reference, config.ppo.epochs)
    _compare_moments(findings, ours, reference)


def _compare_targets(findings: Findings, ours: Leg, reference: Leg) -> None:
    """Advantages and returns."""
    for what, given, expected in (
        ("returns", ours.targets.returns, reference.targets.returns),
        ("advantages", ours.targets.advantage, reference.targets.advantage),
    ):
        findings.within("GAE", what, given, expected, LEARNING * slack(ours), magnitude(expected))


def _compare_losses(findings: Findings, ours: Leg, reference: Leg, ppo: PPOConfig) -> None:
    """Mean losses of the update; the nudged updates tell how much rounding matters."""
    nudged = [dict(losses_of(other.learned, ppo)) for other in reference.others]
    given = dict(losses_of(ours.update.learned, ppo))
    for name, expected in losses_of(reference.update.learned, ppo):
        moved = max(abs(other[name] - expected) for other in nudged)
        least = KINKS if name == CLIP_FRACTION else max(LEARNING * abs(expected), ROUNDING)
        tolerance = max(ROUNDINGS * moved, least)
        apart = torch.tensor([given[name] - expected], dtype=torch.float64)
        findings.within(LOSSES, f"{name}, update", apart, torch.zeros_like(apart), tolerance)


def _compare_optimizer(findings: Findings, ours: Leg, config: Config) -> None:
    """Let the readable optimizer take the recorded gradients: the weights may differ by their rounding only."""
    (recorded,) = ours.others
    policy = deepcopy(ours.policy)
    policy.load_state_dict(policy.state_dict() | by_name(recorded.steps[0].weights, policy))
    gradient = GradientStep(policy, config.optimizer, config.ppo.max_grad_norm)
    gradient.load_state(ours.optimizer)
    start, weights = flat_weights(policy), learned_weights(policy)
    epoch = len(recorded.steps) // config.ppo.epochs
    named = {1: "first step", epoch: "first epoch", len(recorded.steps): "update"}
    for count, step in enumerate(recorded.steps, start=1):
        pieces = by_name(step.gradient, policy)
        with readable_only():
            gradient.add(torch.stack([(weights[name] * pieces[name]).sum() for name in weights]).sum())
            gradient.step(ours.knobs)
        if count == len(recorded.steps) and config.normalize.return_stats == "previous":
            policy.critic.absorb(ours.targets.returns[ours.rollout.valid])  # rescales weights of the critic
        if count in named:
            expected = flat_weights(policy)
            scale = start.abs() + expected.abs() + _STEP * count * ours.knobs.lr
            apart = (_weights_after(recorded, ours, count) - expected) / scale.clamp(min=_TINY)
            what = f"{named[count]}, of the same gradients"
            findings.within(OPTIMIZER, what, apart, torch.zeros_like(apart), TOLERANCE)


def _compare_weights(findings: Findings, ours: Leg, reference: Leg, epochs: int) -> None:
    """How far apart the weights are, relative to how far they moved; both are norms over all weights."""
    steps = len(reference.update.steps)
    for count, what in ((1, "first step"), (steps // epochs, "first epoch"), (steps, "update")):
        recorded = ours.update if count == steps else ours.others[0]
        moved = _movement(reference.update, reference, count)
        scale = max(float(moved.norm()), 1e-8)
        others = [float((_movement(other, reference, count) - moved).norm()) for other in reference.others]
        apart = (_weights_after(recorded, ours, count) - _weights_after(reference.update, reference, count)).norm()
        tolerance = max(ROUNDINGS * max(others) / scale, KINKS)
        findings.within(WEIGHTS, f"after the {what}", apart.reshape(1), torch.zeros(1), tolerance, scale)


def _movement(update: Update, leg: Leg, steps: int) -> Tensor:
    return _weights_after(update, leg, steps) - update.steps[0].weights


def _weights_after(update: Update, leg: Leg, steps: int) -> Tensor:
    if steps < len(update.steps):
        return update.steps[steps].weights
    return torch.cat([update.after[name].flatten() for name in learned_weights(leg.policy)])


def _compare_moments(findings: Findings, ours: Leg, reference: Leg) -> None:
    """Compare running moments: exact ones of observations in float64, those of returns from float32 values."""
    names = list(dict.fromkeys(name.rpartition(".")[0] for name in statistics_of(reference.policy)))
    moments = [
        ("", ours.update.after, reference.update.after),
        (", during the update", ours.others[0].steps[0].statistics, reference.update.steps[0].statistics),
    ]
    for name in names:
        is_obs = name.startswith("preprocess")
        what, tolerance = ("observations", MOMENTS) if is_obs else ("returns", LEARNING)
        for when, given, expected in moments:
            size = expected[f"{name}.var"].sqrt() + expected[f"{name}.mean"].abs() + 1e-8
            for moment, scale in (("count", 1.0), ("mean", size), ("var", size.square())):
                ours_now, reference_now = (values[f"{name}.{moment}"] / scale for values in (given, expected))
                findings.within(STATISTICS, f"moments of {what}{when}", ours_now, reference_now, tolerance)
    if not names:
        findings.skip(STATISTICS, "moments of observations", "normalize.obs and normalize.returns are off")
