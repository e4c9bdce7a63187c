"""Schedules: the learning rate, clip range and entropy weight as functions of progress (S14)."""

import math
from typing import Any

from surefoot.core.config import OptimizerConfig, PPOConfig
from surefoot.core.records import Knobs, Learned, Progress

_KL_FACTOR = 1.5
_LR_RANGE = (1e-6, 1e-2)


def scheduled(start: float, schedule: str, fraction: float, floor: float) -> float:
    """The value at a fraction of the run. Progress counts what is behind, so the last update is never at 0."""
    if schedule == "linear":
        return start * (1 - fraction)
    if schedule == "cosine":
        return start * (floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * fraction)))
    return start


class Schedules:
    """All knobs at once; the KL-adaptive learning rate is the only one that remembers."""

    def __init__(self, ppo: PPOConfig, optimizer: OptimizerConfig) -> None:
        self._ppo, self._optimizer = ppo, optimizer
        self._adaptive_lr = optimizer.lr

    def at(self, progress: Progress) -> Knobs:
        """The knobs for the update that follows."""
        ppo, optimizer = self._ppo, self._optimizer
        fraction, floor = progress.fraction, optimizer.schedule_floor
        if optimizer.lr_schedule == "kl_adaptive":
            lr = self._adaptive_lr
        else:
            lr = scheduled(optimizer.lr, optimizer.lr_schedule, fraction, floor)
        return Knobs(
            lr=lr,
            clip=scheduled(ppo.clip, ppo.clip_schedule, fraction, floor),
            entropy_coef=scheduled(ppo.entropy_coef, ppo.entropy_schedule, fraction, floor),
        )

    def observe(self, learned: Learned) -> None:
        """Steer the adaptive learning rate: down when the KL is twice what is wanted, up when it is half."""
        if self._optimizer.lr_schedule != "kl_adaptive":
            return
        desired, low, high = self._optimizer.desired_kl, *_LR_RANGE
        if learned.approx_kl > 2 * desired:
            self._adaptive_lr = max(low, self._adaptive_lr / _KL_FACTOR)
        elif learned.approx_kl < desired / 2:
            self._adaptive_lr = min(high, self._adaptive_lr * _KL_FACTOR)

    def state(self) -> dict[str, Any]:
        """For checkpoints: the adaptive rate, and the setting that it started from."""
        return {"adaptive_lr": self._adaptive_lr, "configured_lr": self._optimizer.lr}

    def load_state(self, state: dict[str, Any]) -> None:
        """From a checkpoint; a learning rate that the user has changed since wins over the remembered one."""
        if state["configured_lr"] == self._optimizer.lr:
            self._adaptive_lr = state["adaptive_lr"]
