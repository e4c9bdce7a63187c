"""How much rounding matters: networks with large inputs amplify it more than networks with small ones."""

from dataclasses import replace
from functools import lru_cache

import torch
from torch import Tensor

from surefoot.data.records import Obs, State
from surefoot.data.tree import tree_map
from surefoot.policies.policy import PolicyOutput
from surefoot.verification.legs import Leg
from surefoot.verification.nudges import rounded
from surefoot.verification.report import magnitude

ROUNDING = 1e-5
"""Relative error of float32 sums that are added in a different order."""
LEARNING = 1e-4
"""Relative error that the rounding of a rollout causes in sums over time and samples."""
_ROUNDINGS = 8
_MOST = 100.0


def torch_output(leg: Leg) -> PolicyOutput:
    """Torch's output for all observations of a leg as one batch, with its own recurrent state at each step."""
    rollout = leg.rollout
    obs = tree_map(lambda leaf: leaf.flatten(0, 1), rollout.obs)
    mask = None if rollout.action_mask is None else rollout.action_mask.flatten(0, 1)
    before = tuple(torch.cat(tensors) for tensors in zip(*torch_states(leg)[:-1], strict=True))
    output: PolicyOutput = leg.policy(obs, before, rollout.episode_start.flatten(0, 1), mask)
    return output


@torch.inference_mode()
def torch_states(leg: Leg) -> list[State]:
    """Torch's recurrent state before each step of a leg and after the last one."""
    rollout, states = leg.rollout, [tuple(tensor[0] for tensor in leg.rollout.state)]
    if not rollout.state:
        return [()] * (len(rollout.reward) + 1)
    for step, start in enumerate(rollout.episode_start):
        mask = None if rollout.action_mask is None else rollout.action_mask[step]
        obs = tree_map(lambda leaf, step=step: leaf[step], rollout.obs)
        states.append(leg.policy(obs, states[-1], start, mask).state)
    return states


@lru_cache(maxsize=4)
@torch.inference_mode()
def slack(leg: Leg) -> float:
    """The factor for rounding tolerances: 1, or more if the policy is so sensitive that it needs it.

    Rounded observations have roughly the effect of rounding inside the network.
    """
    generator = torch.Generator().manual_seed(0)
    obs: Obs = tree_map(lambda leaf: rounded(leaf, generator) if leaf.is_floating_point() else leaf, leg.rollout.obs)
    here, there = torch_output(leg), torch_output(replace(leg, rollout=replace(leg.rollout, obs=obs)))
    action = leg.rollout.action.flatten(0, 1)
    changes = [
        _share(there.value, here.value),
        _share(there.distribution.log_prob(action), here.distribution.log_prob(action)),
    ]
    if action.is_floating_point():
        changes.append(_share(there.distribution.mode(), here.distribution.mode()))
    return min(_MOST, max(1.0, _ROUNDINGS * max(changes) / ROUNDING))


def _share(nudged: Tensor, reference: Tensor) -> float:
    return float((nudged - reference).abs().max()) / magnitude(reference)
