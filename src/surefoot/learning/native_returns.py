"""Sums along the steps of a rollout in the core, equal to their references in every bit."""

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from surefoot.native import core


def gae_in_core(
    rewards: Tensor,
    values: Tensor,
    last_values: Tensor,
    terminated: Tensor,
    truncated: Tensor,
    final_values: Tensor,
    gamma: float,
    gae_lambda: float,
    valid: Tensor,
) -> tuple[Tensor, Tensor]:
    """Advantages and returns, as `gae` computes them."""
    advantages, returns = torch.empty_like(rewards), torch.empty_like(rewards)
    given = {"reward": rewards, "value": values, "last_value": last_values, "final_value": final_values}
    flags = {"terminated": terminated, "truncated": truncated, "valid": valid}
    made = {"advantage": advantages, "returns": returns}
    core().gae(_arrays(given | flags | made), gamma, gae_lambda)
    return advantages, returns


def discounted_sums_in_core(rewards: Tensor, ended: Tensor, carried: Tensor, gamma: float) -> Tensor:
    """Discounted sums of past rewards, as `discounted_sums` computes them."""
    sums = torch.empty_like(rewards)
    core().discounted_sums(_arrays({"reward": rewards, "ended": ended, "carried": carried, "sums": sums}), gamma)
    return sums


def _arrays(tensors: dict[str, Tensor]) -> dict[str, NDArray[Any]]:
    return {name: tensor.contiguous().numpy() for name, tensor in tensors.items()}
