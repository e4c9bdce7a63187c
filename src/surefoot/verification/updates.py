"""The update after a native rollout against the reference's, which runs without the core's kernels."""

import torch
from torch import Tensor

from surefoot.core.config import PPOConfig
from surefoot.policies.normalizer import RunningNormalizer
from surefoot.policies.policy import Policy
from surefoot.verification.differences import magnitude
from surefoot.verification.first_step import FirstStep
from surefoot.verification.gradients import compare_gradients
from surefoot.verification.legs import Leg, path
from surefoot.verification.report import Findings
from surefoot.verification.rounding import slack

LEARNING = 1e-4
"""Relative error that the rounding of a rollout causes in sums over time and samples."""
MOVEMENT = 5e-2
"""Difference of the weights after an update, relative to the distance that they moved; both are norms over all weights.

Rounding grows in an update: Adam takes full steps even where a gradient is little more than rounding, and samples at a
kink, such as those at the edge of a clipped loss, cannot be left out. The gradient itself is compared more strictly.
"""
MOMENTS = 1e-9
"""Relative error of float64 moments that are summed in a different order."""
_LOSSES = ("policy_loss", "value_loss", "entropy", "approx_kl", "grad_norm")


def compare_updates(findings: Findings, ours: Leg, reference: Leg, ppo: PPOConfig) -> None:
    """Advantages, losses, gradients, weights and statistics."""
    tolerance = LEARNING * slack(ours)
    for what, given, expected in (
        ("returns", ours.targets.returns, reference.targets.returns),
        ("advantages", ours.targets.advantage, reference.targets.advantage),
    ):
        findings.within("GAE", what, given, expected, tolerance, magnitude(expected))
    expected = _first_losses(reference, ppo, is_readable=True)
    given = _first_losses(ours, ppo, is_readable=False)
    findings.within("losses", "before the update", given, expected, tolerance, magnitude(expected))
    compare_gradients(findings, reference, ppo)
    given, expected = _mean_losses(ours), _mean_losses(reference)
    findings.within("gradients", "losses of the update", given, expected, tolerance, magnitude(expected))
    _compare_weights(findings, ours, reference)
    _compare_moments(findings, ours, reference)


def _compare_weights(findings: Findings, ours: Leg, reference: Leg) -> None:
    names = [name for name, parameter in reference.policy.named_parameters() if parameter.requires_grad]
    before = dict(reference.policy.named_parameters())
    start, given, expected = (
        torch.cat([tensors[name].detach().flatten() for name in names])
        for tensors in (before, ours.after, reference.after)
    )
    apart, moved = (given - expected).norm().reshape(1), float((expected - start).norm())
    findings.within("gradients", "weights after update", apart, torch.zeros(1), MOVEMENT, max(moved, 1e-8))


def _compare_moments(findings: Findings, ours: Leg, reference: Leg) -> None:
    """Compare running moments: exact ones of observations in float64, those of returns from float32 values."""
    compared = False
    for name in _normalizers(reference.policy):
        is_obs, compared = name.startswith("preprocess"), True
        what, tolerance = ("observations", MOMENTS) if is_obs else ("returns", LEARNING)
        std = reference.after[f"{name}.var"].sqrt()
        size = std + reference.after[f"{name}.mean"].abs() + 1e-8
        for moment, scale in (("count", 1.0), ("mean", size), ("var", size.square())):
            given, expected = (leg.after[f"{name}.{moment}"] / scale for leg in (ours, reference))
            findings.within("normalizer statistics", f"moments of {what}", given, expected, tolerance)
    if not compared:
        findings.skip("normalizer statistics", "moments of observations", "normalize.obs and normalize.returns are off")


def _normalizers(policy: Policy) -> list[str]:
    return [name for name, module in policy.named_modules() if isinstance(module, RunningNormalizer)]


def _first_losses(leg: Leg, ppo: PPOConfig, is_readable: bool) -> Tensor:
    with path(is_readable):
        first = FirstStep(leg, ppo)
        losses = first.losses(leg.policy, first.batch())
    return torch.stack([part.detach().double() for part in (losses.total, *losses.watched.values())])


def _mean_losses(leg: Leg) -> Tensor:
    return torch.tensor([getattr(leg.learned, name) for name in _LOSSES], dtype=torch.float64)
