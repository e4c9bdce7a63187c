"""Sums along the steps of a rollout in the core, equal to their references in every bit."""

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from surefoot.core.records import Rollout
from surefoot.native import core


def gae_in_core(rollout: Rollout, gamma: float, gae_lambda: float) -> tuple[Tensor, Tensor]:
    """Advantages and returns, as `gae` computes them."""
    names = ("reward", "value", "last_value", "final_value", "terminated", "truncated", "valid")
    advantages, returns = torch.empty(rollout.reward.shape), torch.empty(rollout.reward.shape)
    given = {name: getattr(rollout, name) for name in names} | {"advantage": advantages, "returns": returns}
    core().gae(_arrays(given), gamma, gae_lambda)
    return advantages, returns


def discounted_sums_in_core(rewards: Tensor, ended: Tensor, carried: Tensor, gamma: float) -> Tensor:
    """Discounted sums of past rewards, as `discounted_sums` computes them."""
    sums = torch.empty(rewards.shape)  # contiguous, whatever the rewards are: the core writes into it
    core().discounted_sums(_arrays({"reward": rewards, "ended": ended, "carried": carried, "sums": sums}), gamma)
    return sums


def _arrays(tensors: dict[str, Tensor]) -> dict[str, NDArray[Any]]:
    return {name: tensor.contiguous().numpy() for name, tensor in tensors.items()}
