"""Collects the measurements of an update per minibatch, and summarizes them at the end."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from surefoot.data.moments import explained_variance
from surefoot.data.records import Batch, Knobs, Learned
from surefoot.learning.native_returns import suits_core
from surefoot.learning.native_statistics import fit_in_core
from surefoot.learning.part_norms import critics_ratio, norms_of_frozen
from surefoot.native.kernels import faster_by
from surefoot.policies.policy import Policy
from surefoot.rollout.samples import Samples, acted

POLICY_LOSS, VALUE_LOSS, ENTROPY_LOSS = "surrogate/loss", "value/loss", "entropy/loss"
KL, CLIP_FRACTION = "surrogate/approx_kl", "surrogate/clip_fraction"
GRAD_NORM, SKIPPED = "grad_norm", "skipped"
_NAMED = (POLICY_LOSS, VALUE_LOSS, ENTROPY_LOSS, KL, CLIP_FRACTION, GRAD_NORM, SKIPPED)
"""Measurements with a field in `Learned`; all others go to its metrics."""
_STD_SAMPLES = 256

Watched = dict[str, Tensor]


def combined(parts: Sequence[tuple[float, Watched]]) -> Watched:
    """Mean over the micro-batches of a minibatch, weighted by size."""
    if len(parts) == 1 and parts[0][0] == 1:
        return parts[0][1]
    # What has no weight may be NaN.
    return {
        name: torch.stack([share * watched[name] if share else one.new_zeros(()) for share, watched in parts]).sum()
        for name, one in parts[0][1].items()
    }


class Watch:
    """One row per minibatch, weighted by size, in one table per epoch; kept on the device."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._rows: list[Tensor] = []
        self._epochs: list[Tensor] = []

    def add(self, watched: Watched, share: float) -> None:
        """Add a minibatch."""
        self._names = self._names or list(watched)
        self._rows.append(torch.stack(list(watched.values())) * share)

    def end_epoch(self) -> None:
        """Finish an epoch."""
        self._epochs.append(torch.stack(self._rows))
        self._rows = []

    def kl(self) -> Tensor:
        """The KL divergence over all samples of the last epoch."""
        return self._epochs[-1][:, self._names.index(KL)].sum()

    def measured(self) -> "Measured":
        """All measurements, in the CPU's memory."""
        return Measured(self._names, torch.cat(self._epochs).cpu().numpy(), [len(rows) for rows in self._epochs])


@dataclass(frozen=True)
class Measured:
    """The measurements of an update."""

    names: Sequence[str]
    rows: NDArray[np.floating[Any]]
    """[minibatches, names], weighted by size within their epoch."""
    sizes: Sequence[int]
    """Numbers of minibatches in each epoch."""

    def summary(self, samples: Samples, policy: Policy, knobs: Knobs, metrics: dict[str, float]) -> Learned:
        """Means over the epochs, except the KL divergence, which is that of the last epoch."""
        batch = acted(samples.batch)
        explained, error = fit(batch.value, batch.returns)
        named = dict(zip(self.names, (self.rows.sum(0) / len(self.sizes)).tolist(), strict=True))
        skips = [bool(skipped) for skipped in self.rows[:, self.names.index(SKIPPED)].tolist()]
        others = {name: value for name, value in named.items() if name not in _NAMED}
        if 0 in others.values():  # else no part is frozen, and there is no need to look
            silent = norms_of_frozen(policy)
            others = {name: value for name, value in others.items() if name not in silent}
        weights = {name.replace(".", "/"): value for name, value in knobs.items() if "." in name}
        return Learned(
            policy_loss=named[POLICY_LOSS],
            value_loss=named[VALUE_LOSS],
            entropy=-named[ENTROPY_LOSS],
            approx_kl=float(self.rows[-self.sizes[-1] :, self.names.index(KL)].sum()),
            clip_fraction=named[CLIP_FRACTION],
            grad_norm=named[GRAD_NORM],
            explained_variance=explained,
            epochs=len(self.sizes),
            skipped_steps=sum(skips),
            lr=knobs.lr,
            clip=knobs.clip,
            entropy_coef=knobs.entropy_coef,
            std=_mean_std(samples, policy),
            value_error=error,
            skips=tuple(skips),
            metrics=metrics | others | critics_ratio(others) | weights | _critic_metrics(batch, policy),
        )


def _critic_metrics(batch: Batch, policy: Policy) -> dict[str, float]:
    stored = batch.extras.get("prediction")
    return {} if stored is None else policy.critic.metrics(stored)


@faster_by(fit_in_core, suits_core)
def fit(values: Tensor, returns: Tensor) -> tuple[float, float]:
    """How well values predict returns: explained variance, and the std of errors relative to the size of the returns.

    The second stays small if returns hardly vary and the values are nearly correct.
    """
    values, returns = values.double(), returns.double()
    error = (returns - values).std(correction=0) / returns.square().mean().sqrt()
    return float(explained_variance(values, returns)), float(error)


@torch.no_grad()
def _mean_std(samples: Samples, policy: Policy) -> float | None:
    """Mean std over some samples: it is usually the same for all, and a pass over the whole batch would be slow."""
    std = policy.head.mean_std(lambda: policy(*next(samples.minibatches(_STD_SAMPLES)).inputs).distribution)
    return None if std is None else float(std)
