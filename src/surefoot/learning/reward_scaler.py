"""Scales rewards by the standard deviation of the discounted return, so that values are on the scale of 1."""

from typing import Any

import torch
from torch import Tensor

from surefoot.data.moments import Moments
from surefoot.data.records import Rollout
from surefoot.learning.native_returns import discounted_sums_in_core, suits_core
from surefoot.native.kernels import faster_by
from surefoot.policies.normalizer import EPSILON
from surefoot.storage.saved import Saved


@faster_by(discounted_sums_in_core, suits_core)  # the same bits
def discounted_sums(rewards: Tensor, ended: Tensor, carried: Tensor, gamma: float) -> Tensor:
    """R_t = gamma R_{t-1} + r_t `[T, N]`, starting at `carried`, and at zero after the end of an episode."""
    sums = torch.empty_like(rewards)
    for t in range(len(rewards)):
        sums[t] = carried = gamma * carried + rewards[t]
        carried = carried * ~ended[t]
    return sums


class RewardScaler:
    """Statistics are updated once per rollout, before it is scaled."""

    def __init__(self, num_rows: int, gamma: float, clip: float) -> None:
        self._gamma, self._clip = gamma, clip
        self._carried = torch.zeros(num_rows)
        zero = torch.zeros((), dtype=torch.float64)
        self._moments = Moments(zero, zero, zero)

    def scale(self, rollout: Rollout) -> Tensor:
        """Scaled rewards `[T, N]`; the bootstrap value is added later, so it is never scaled or clipped twice."""
        ended = rollout.terminated | rollout.truncated
        rewards = torch.where(rollout.valid, rollout.reward, 0)
        sums = discounted_sums(rewards, ended, self._carried, self._gamma)
        self._carried = sums[-1] * ~ended[-1]
        self._moments = self._moments.merge(Moments.of(sums[rollout.valid]))
        deviation = (self._moments.var + EPSILON).sqrt().float()
        return (rewards / deviation).clamp(-self._clip, self._clip)

    def forget_running(self) -> None:
        """The episodes of the rows were cut off: their sums restart at zero."""
        self._carried = torch.zeros_like(self._carried)

    def state(self) -> dict[str, Any]:
        """For checkpoints."""
        moments = self._moments
        return {
            "carried": self._carried,
            "count": moments.count,
            "mean": moments.mean,
            "var": moments.var,
        }

    def check_state(self, saved: Saved) -> None:
        """Check types, shapes and signs; the number of rows may differ."""
        own = self.state()
        carried = saved["carried"].array()
        rows = carried.shape[0] if carried.ndim == 1 else len(self._carried)
        saved.like(own | {"carried": own["carried"].new_zeros(()).expand(rows)})
        for name in ("count", "var"):
            if saved[name].value < 0:
                raise saved[name].wrong("0 or more")

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore from a checkpoint; with a different number of rows the running sums restart at zero."""
        if len(state["carried"]) == len(self._carried):
            self._carried = state["carried"].clone()
        self._moments = Moments(state["count"], state["mean"], state["var"])
