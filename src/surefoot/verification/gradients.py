"""The gradient of the first step, computed with the core's kernels and with torch alone, weight by weight."""

import math
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from surefoot.core.config import PPOConfig
from surefoot.core.records import Batch
from surefoot.native.kernels import readable_only
from surefoot.policies.policy import Policy
from surefoot.verification.first_step import FirstStep
from surefoot.verification.kinks import at_a_kink, kink_distances
from surefoot.verification.legs import Leg
from surefoot.verification.report import Findings

NUDGE = 2.0**-23
"""One rounding of a float32."""
NUDGES = 6
TOLERANCE = 32 * NUDGE
"""Allowed differences, as the relative error in all weights and targets that would have the same effect."""
MOST_AT_A_KINK = 0.1
"""Share of the samples that may lie at a kink."""
_LEAST_SHARE = 0.1
"""The least sensitivity of an element, relative to what is typical in its tensor."""
_TINY = 1e-30
NAME, FIRST = "gradients", "of the first step"


@dataclass(frozen=True)
class Nudged:
    """A policy whose weights were each rounded once more, up or down; does the same to the targets of a batch."""

    policy: Policy
    seed: int

    def batch(self, batch: Batch) -> Batch:
        """The same samples with nudged targets."""
        generator = torch.Generator().manual_seed(self.seed)
        advantage, returns = (_rounded(target, generator) for target in (batch.advantage, batch.returns))
        return replace(batch, advantage=advantage, returns=returns)


def compare_gradients(findings: Findings, reference: Leg, ppo: PPOConfig) -> None:
    """Compare both gradients of the reference's samples, without the samples at a kink."""
    with readable_only():
        first = FirstStep(reference, ppo)
        nudged = [_nudged(reference.policy, seed) for seed in range(NUDGES)]
        kept = _kept_units(findings, first, reference.policy, nudged)
    if not len(kept):
        findings.skip(NAME, FIRST, "every sequence has a sample at a kink")
        return
    batch = first.batch(kept)
    ours = first.gradient(reference.policy, batch)
    with readable_only():
        expected = first.gradient(reference.policy, batch)
        others = [first.gradient(each.policy, each.batch(batch)) for each in nudged]
    for name, gradient in expected.items():
        sensitivity = _sensitivity(gradient, torch.stack([other[name] - gradient for other in others]))
        apart = (ours[name] - gradient) / sensitivity
        findings.within(NAME, FIRST, apart, torch.zeros_like(apart), TOLERANCE)


def _kept_units(findings: Findings, first: FirstStep, policy: Policy, nudged: list[Nudged]) -> Tensor:
    """The units without a sample at a kink: gradients flow through all samples of a sequence.

    Some come several times to make up for those left out, because the kernels only run in large batches.
    """
    batch = first.batch()
    here = kink_distances(partial(first.losses, policy, batch))
    there = [kink_distances(partial(first.losses, each.policy, each.batch(batch))) for each in nudged]
    unit_of, kinked = first.unit_of_samples(batch), at_a_kink(len(batch), here, there)
    left_out = torch.isin(unit_of, unit_of[kinked])
    with_others = "" if batch.batch_sizes is None else f", with their sequences {int(left_out.sum()):,},"
    note = f"samples{with_others} are left out: rounding decides their slope"
    findings.count(NAME, "samples at a kink", int(kinked.sum()), len(batch), note, int(MOST_AT_A_KINK * len(batch)))
    units, lengths = torch.arange(first.num_units), unit_of.bincount()
    kept = units[~torch.isin(units, unit_of[kinked])]
    kept = kept.repeat(math.ceil(len(batch) / max(1, int(lengths[kept].sum()))))
    return kept[lengths[kept].cumsum(0) - lengths[kept] < len(batch)]


def _sensitivity(gradient: Tensor, moves: Tensor) -> Tensor:
    """How far each element of a gradient moves per relative error, from how far it moved in each nudge.

    Few nudges give a rough estimate for one element, so it is not taken to be less than its row and column suggest.
    """
    moved = moves.square().mean(0).sqrt()
    typical = moved.square().mean().sqrt()
    suggested = typical
    if moved.dim() > 1:
        table = moved.flatten(1).square()
        rows, columns = table.mean(1, keepdim=True).sqrt(), table.mean(0).sqrt()
        suggested = (rows * columns / typical.clamp(min=_TINY)).view_as(moved)
    least = torch.maximum(_LEAST_SHARE * typical, NUDGE * gradient.abs())
    return torch.maximum(torch.maximum(moved, suggested), least).clamp(min=_TINY) / NUDGE


@torch.no_grad()
def _nudged(policy: Policy, seed: int) -> Nudged:
    policy, generator = deepcopy(policy), torch.Generator().manual_seed(seed)
    for weight in policy.parameters():
        weight.copy_(_rounded(weight, generator))
    return Nudged(policy, seed)


def _rounded(values: Tensor, generator: torch.Generator) -> Tensor:
    is_up = torch.rand(values.shape, generator=generator) < 0.5
    return values * torch.where(is_up, 1 + NUDGE, 1 - NUDGE)
