"""What is learned from a native rollout against what is learned from the reference's."""

import torch
from torch import Tensor

from surefoot.core.records import Learned
from surefoot.policies.normalizer import RunningNormalizer
from surefoot.policies.policy import Policy
from surefoot.verification.differences import magnitude
from surefoot.verification.legs import Leg
from surefoot.verification.report import Findings
from surefoot.verification.rounding import slack

LEARNING = 1e-4
"""Rounding of the rollout, carried through sums over time and samples."""
MOVEMENT = 1e-2
"""Of weights in an update, as a share of the way they went; of the whole vector, because Adam makes large steps of
gradients that are nearly nothing."""
SMALL_PART = 1e-2
"""Gradients of a parameter are compared by its own size, but not by less than this share of the largest of all."""
MOMENTS = 1e-9
"""Float64 moments, summed in another order."""
_LOSSES = ("policy_loss", "value_loss", "entropy", "approx_kl", "grad_norm")


def compare_updates(findings: Findings, ours: Leg, reference: Leg) -> None:
    """Advantages, losses, gradients, weights and statistics."""
    scale, tolerance = magnitude(reference.targets.returns), LEARNING * slack(ours)
    findings.within("GAE", "returns", ours.targets.returns, reference.targets.returns, tolerance, scale)
    advantage = reference.targets.advantage
    findings.within("GAE", "advantages", ours.targets.advantage, advantage, tolerance, magnitude(advantage))
    for what, losses in (("before the update", _first), ("means of the update", _means)):
        expected = losses(reference)
        findings.within("losses", what, losses(ours), expected, tolerance, magnitude(expected))
    findings.within(
        "gradients", "of the first step", ours.gradient, reference.gradient, tolerance, _size(reference.gradient)
    )
    compare_kernels(findings, ours)
    _compare_weights(findings, ours, reference)
    _compare_moments(findings, ours, reference)


def compare_kernels(findings: Findings, leg: Leg) -> None:
    """What the core's kernels make of a batch (backpropagation through time, nonlinearities), and torch alone."""
    sizes = [parameter.numel() for parameter in leg.policy.parameters() if parameter.requires_grad]
    parts = zip(leg.gradient.split(sizes), leg.readable_gradient.split(sizes), strict=True)
    least = SMALL_PART * _size(leg.readable_gradient)
    for ours, expected in parts:
        findings.within("gradients", "kernels and torch", ours, expected, LEARNING, max(least, _size(expected)))


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
    """Of observations in float64; those of returns follow from float32 values."""
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


def _first(leg: Leg) -> Tensor:
    return torch.stack([part.detach().double() for part in (leg.losses.total, *leg.losses.watched.values())])


def _means(leg: Leg) -> Tensor:
    learned: Learned = leg.learned
    return torch.tensor([getattr(learned, name) for name in _LOSSES], dtype=torch.float64)


def _size(values: Tensor) -> float:
    return max(1e-8, float(values.abs().max()))
