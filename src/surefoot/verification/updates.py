"""The update after a native rollout against the reference's, which runs without the core."""

from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import combinations

import torch
from torch import Tensor

from surefoot.learning.gradient import GradientStep
from surefoot.native.kernels import readable_only
from surefoot.settings.config import Config, PPOConfig
from surefoot.verification.gradients import CLIP_FRACTION, compare_first_step, losses_of
from surefoot.verification.legs import Leg, Traveler, Update, repeated
from surefoot.verification.nudges import ROUNDINGS, TOLERANCE
from surefoot.verification.recording import by_name, flat_moments, flat_weights, learned_weights, statistics_of
from surefoot.verification.report import Findings
from surefoot.verification.rounding import LEARNING, ROUNDING, slack

UPDATE = 2e-3
"""Allowed difference of an update: of weights, relative to how far they moved, and of losses.

A sample that changes sides at the kink of one relu has about half of this effect.
"""
SAMPLES = 2e-3
"""Allowed difference of the clip fraction: one or two samples."""
BRANCHES = 6
"""Number of updates of the reference, the nudged ones included, one of which the fast path must follow."""
MOMENTS = 1e-9
"""Relative error of float64 moments that are summed in a different order."""
GRADIENTS = 2
"""Number of legs whose gradients are compared: as they are, and with clipped samples."""
LOSSES, WEIGHTS, OPTIMIZER, STATISTICS = "losses", "weights", "optimizer", "normalizer statistics"
TRANSFORMS = "gradient transforms"
_CAUSES = ("log-probs", "values", "GAE", "gradients", LOSSES, WEIGHTS)
"""Components that explain a difference in an update: if one differs already, kinks are not the reason."""
_STEP = 10.0
"""Rounding of a step, in roundings of the learning rate: several numbers are rounded before it is added to a weight."""
_TINY = 1e-30


def compare_learners(findings: Findings, fast: Traveler, ours: Leg, reference: Leg, config: Config, leg: int) -> None:
    """Everything that a learner computes; `leg` is the number of the leg."""
    findings.fine("learner", "against the readable", fast.learner.description)
    _compare_targets(findings, ours, reference)
    if leg < GRADIENTS:
        compare_first_step(findings, reference, config, clips=leg > 0)
    recorded = repeated(ours, config)
    steps = [len(update.steps) for update in (recorded, reference.update)]
    if steps[0] != steps[1]:
        findings.broken(WEIGHTS, "number of steps", f"{steps[0]} instead of {steps[1]}")
        return
    _compare_update(findings, ours, recorded, reference, config)
    _compare_optimizer(findings, ours, recorded, config)
    _compare_moments(findings, ours, recorded, reference)
    _compare_frozen(findings, ours, reference)


def _compare_targets(findings: Findings, ours: Leg, reference: Leg) -> None:
    """Advantages and returns."""
    for what, given, expected in (
        ("returns", ours.targets.returns, reference.targets.returns),
        ("advantages", ours.targets.advantage, reference.targets.advantage),
    ):
        findings.within("GAE", what, given, expected, LEARNING * slack(ours))


@dataclass(frozen=True)
class _Row:
    name: str
    compared: str
    apart: float
    tolerance: float

    @property
    def is_close(self) -> bool:
        return self.apart <= self.tolerance


def _compare_update(findings: Findings, ours: Leg, recorded: Update, reference: Leg, config: Config) -> None:
    """Compare losses and weights of the whole update; each learner learned from its own rollout.

    Samples at a kink cannot be left out of it, and rounding decides which way they go. So if there is a difference, the
    reference repeats its update with nudges, and the fast path must agree with one of these updates.
    """
    branches = [reference.update]
    rows = _rows(ours, recorded, reference.update, None, config.ppo)
    most = 1 if any(findings.has_broken(name) for name in _CAUSES) else BRANCHES
    while not all(row.is_close for row in rows) and len(branches) < most:
        for _ in range(2 if len(branches) == 1 else 1):
            branches.append(repeated(reference, config, is_readable=True, nudge=len(branches)))
        nearest = min(branches, key=lambda branch: _distance(recorded, branch))
        alike = min(combinations(branches, 2), key=lambda pair: _distance(*pair))
        rows = _rows(ours, recorded, nearest, alike, config.ppo)
    for row in rows:
        findings.within(row.name, row.compared, row.apart, 0, row.tolerance)


def _rows(
    ours: Leg, recorded: Update, expected: Update, alike: tuple[Update, Update] | None, ppo: PPOConfig
) -> list[_Row]:
    """Differences from an update of the reference; two that are alike tell how much rounding matters."""
    rows, given = [], dict(losses_of(ours.update.learned, ppo))
    pair = [dict(losses_of(update.learned, ppo)) for update in alike or ()]
    for name, loss in losses_of(expected.learned, ppo):
        least = SAMPLES if name == CLIP_FRACTION else max(UPDATE * abs(loss), ROUNDING)
        moved = abs(pair[0][name] - pair[1][name]) if pair else 0.0
        rows.append(_Row(LOSSES, f"{name}, update", abs(given[name] - loss), max(ROUNDINGS * moved, least)))
    steps = len(expected.steps)
    trained = replace(recorded, weights=ours.update.weights)
    for count, what in ((1, "first step"), (steps // ppo.epochs, "first epoch"), (steps, "update")):
        scale = max(float(_movement(expected, count).norm()), _TINY)
        moved = ROUNDINGS * _distance(*alike, count) / scale if alike else 0.0
        apart = _distance(trained, expected, count) / scale
        rows.append(_Row(WEIGHTS, f"after the {what}", apart, max(moved, UPDATE)))
    for name, state in expected.transforms.items():
        scale = max(float(state.norm()), _TINY)
        moved = (
            ROUNDINGS * float((alike[0].transforms[name] - alike[1].transforms[name]).norm()) / scale if alike else 0.0
        )
        apart = float((ours.update.transforms[name] - state).norm()) / scale
        rows.append(_Row(TRANSFORMS, f"{name}, after the update", apart, max(moved, UPDATE)))
    return rows


def _compare_optimizer(findings: Findings, ours: Leg, recorded: Update, config: Config) -> None:
    """Let the readable optimizer take the recorded gradients: the weights may differ by their rounding only."""
    policy = deepcopy(ours.policy)
    policy.load_state_dict(policy.state_dict() | by_name(recorded.steps[0].weights, policy))
    gradient = GradientStep(policy, config.optimizer, config.ppo.max_grad_norm)
    gradient.load_state(ours.before["gradient"])
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
            apart = (_weights_after(recorded, count) - expected) / scale.clamp(min=_TINY)
            findings.within(OPTIMIZER, f"{named[count]}, of the same gradients", apart, 0, TOLERANCE)
    for kind, moment in flat_moments(gradient.state()).items():
        size = max(float(moment.abs().max()), _TINY)
        findings.within(OPTIMIZER, "moments, of the same gradients", ours.update.moments[kind], moment, LEARNING, size)


def _distance(update: Update, other: Update, steps: int | None = None) -> float:
    """How far apart the movements of all weights are, as a norm."""
    steps = len(other.steps) if steps is None else steps
    return float((_movement(update, steps) - _movement(other, steps)).norm())


def _movement(update: Update, steps: int) -> Tensor:
    return _weights_after(update, steps) - update.steps[0].weights


def _weights_after(update: Update, steps: int) -> Tensor:
    return update.weights if steps == len(update.steps) else update.steps[steps].weights


def _compare_moments(findings: Findings, ours: Leg, recorded: Update, reference: Leg) -> None:
    """Compare running moments: exact ones of observations in float64, those of returns from float32 values."""
    names = list(dict.fromkeys(name.rpartition(".")[0] for name in statistics_of(reference.policy)))
    moments = [
        ("", ours.update.after, reference.update.after),
        (", during the update", recorded.steps[0].statistics, reference.update.steps[0].statistics),
    ]
    for name in names:
        is_obs = name.startswith("preprocess")
        what, tolerance = ("observations", MOMENTS) if is_obs else ("returns", LEARNING)
        for when, given, expected in moments:
            size = expected[f"{name}.var"].sqrt() + expected[f"{name}.mean"].abs() + 1e-8
            for moment, scale in (("count", 1.0), ("mean", size), ("var", size.square())):
                ours_now, reference_now = (values[f"{name}.{moment}"] / scale for values in (given, expected))
                findings.within(STATISTICS, f"moments of {what}{when}", ours_now, reference_now, tolerance, 1.0)
    if not names:
        findings.skip(STATISTICS, "moments of observations", "normalize.obs and normalize.returns are off")


def _compare_frozen(findings: Findings, ours: Leg, reference: Leg) -> None:
    """Frozen parameters keep every bit, in both learners."""
    frozen = {name: weight for name, weight in ours.policy.named_parameters() if not weight.requires_grad}
    for name, before in frozen.items():
        for whose, leg in (("native", ours), ("readable", reference)):
            findings.bits(WEIGHTS, f"frozen, after the update of the {whose}", leg.update.after[name], before.detach())
