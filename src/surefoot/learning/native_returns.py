"""Sums along the steps of a rollout in the core, equal to their references in every bit, for float32 on the CPU."""

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
    valid: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Advantages and returns, as `gae` computes them."""
    given = {"reward": rewards, "value": values, "last_value": last_values, "final_value": final_values}
    given |= {"terminated": terminated.bool(), "truncated": truncated.bool()}
    given["valid"] = torch.ones_like(terminated, dtype=torch.bool) if valid is None else valid.bool()
    made = {"advantage": torch.empty(rewards.shape), "returns": torch.empty(rewards.shape)}
    core().gae(_arrays(given | made), gamma, gae_lambda)
    return made["advantage"], made["returns"]


def discounted_sums_in_core(rewards: Tensor, ended: Tensor, carried: Tensor, gamma: float) -> Tensor:
    """Discounted sums of past rewards, as `discounted_sums` computes them."""
    sums = torch.empty(rewards.shape)  # contiguous, whatever the rewards are: the core writes into it
    core().discounted_sums(_arrays({"reward": rewards, "ended": ended, "carried": carried, "sums": sums}), gamma)
    return sums


def suits_core(rewards: Tensor, *others: object, **named: object) -> bool:
    """Whether the core computes with such numbers."""
    return rewards.dtype == torch.float32 and rewards.is_cpu


def _arrays(tensors: dict[str, Tensor]) -> dict[str, NDArray[Any]]:
    return {name: tensor.contiguous().numpy() for name, tensor in tensors.items()}
