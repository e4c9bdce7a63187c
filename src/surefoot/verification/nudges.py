"""Measures how much rounding matters: the same computation again, with each weight and target rounded once more."""

from copy import deepcopy
from dataclasses import replace

import torch
from torch import Tensor

from surefoot.data.records import Targets
from surefoot.policies.policy import Policy

NUDGE = 2.0**-23
"""One rounding of a float32."""
ROUNDINGS = 32
"""Allowed differences, in roundings of all weights and targets."""
TOLERANCE = ROUNDINGS * NUDGE
_LEAST_SHARE = 0.1
"""The least sensitivity of an element, relative to what is typical in its tensor."""
_TINY = 1e-30


def nudged_policy(policy: Policy, seed: int) -> Policy:
    """A copy whose weights are each rounded up or down."""
    policy = deepcopy(policy)
    nudge_weights(policy, seed)
    return policy


@torch.no_grad()
def nudge_weights(policy: Policy, seed: int) -> None:
    """Round each weight up or down, in place."""
    generator = torch.Generator().manual_seed(seed)
    for weight in policy.parameters():
        weight.copy_(rounded(weight, generator))


def nudged_targets(targets: Targets, seed: int) -> Targets:
    """The same targets, each rounded up or down."""
    generator = torch.Generator().manual_seed(seed)
    advantage, returns = (rounded(target, generator) for target in (targets.advantage, targets.returns))
    return replace(targets, advantage=advantage, returns=returns)


def rounded(values: Tensor, generator: torch.Generator) -> Tensor:
    """Each number rounded up or down by one digit."""
    is_up = torch.rand(values.shape, generator=generator) < 0.5
    return values * torch.where(is_up, 1 + NUDGE, 1 - NUDGE)


def sensitivity(moves: Tensor, least: Tensor) -> Tensor:
    """How far each element moves per relative error, from how far it moved in each nudge; not less than `least`.

    Few nudges give a rough estimate for one element, so it is not taken to be less than its row and column suggest.
    """
    moved = moves.square().mean(0).sqrt()
    typical = moved.square().mean().sqrt()
    suggested = typical
    if moved.dim() > 1:
        table = moved.flatten(1).square()
        rows, columns = table.mean(1, keepdim=True).sqrt(), table.mean(0).sqrt()
        suggested = (rows * columns / typical.clamp(min=_TINY)).view_as(moved)
    least = torch.maximum(_LEAST_SHARE * typical, NUDGE * least)
    return torch.maximum(torch.maximum(moved, suggested), least).clamp(min=_TINY) / NUDGE
