"""One gradient step of the learner that training uses, and of the readable one, from the same samples."""

import math
from functools import partial

import torch
from torch import Tensor

from surefoot.native.kernels import readable_only
from surefoot.settings.config import Config
from surefoot.verification.first_step import GRAD_NORM, FirstStep, Given
from surefoot.verification.kinks import at_a_kink, kink_distances
from surefoot.verification.legs import Leg
from surefoot.verification.nudges import TOLERANCE, sensitivity
from surefoot.verification.report import Findings
from surefoot.verification.rounding import LEARNING, ROUNDING

NUDGES = 6
MOST_AT_A_KINK = 0.1
"""Share of the samples that may lie at a kink."""
_SUM, _NORM = ROUNDING / TOLERANCE, LEARNING / TOLERANCE
"""Least relative error of losses, and of the norm, whose squares PyTorch adds in float32 over all weights."""
GRADIENTS, LOSSES = "gradients", "losses"
FIRST, CLIPPED = "first minibatch", "first minibatch, clipped"


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
        findings.within(LOSSES, f"{name}, {what}", apart, torch.zeros_like(apart), TOLERANCE)
    for name, gradient in expected.gradient.items():
        moves = torch.stack([other.gradient[name] - gradient for other in others])
        apart = (ours.gradient[name] - gradient) / sensitivity(moves, gradient.abs())
        findings.within(GRADIENTS, what, apart, torch.zeros_like(apart), TOLERANCE)


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
