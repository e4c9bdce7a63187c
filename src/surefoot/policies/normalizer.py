"""Running normalization whose statistics change only when samples are absorbed explicitly (S10, docs/semantics.md)."""

import math

import torch
from torch import Tensor, nn

from surefoot.data.moments import Moments
from surefoot.errors import CheckpointError
from surefoot.policies.native_parts import Plain, PlanBuilder
from surefoot.storage.saved import Saved

EPSILON = 1e-8
"""Added to variances; also by the reward scaler."""


class RunningNormalizer(nn.Module):
    """(x - mean) / std with the moments of all absorbed samples; initially mean 0 and std 1."""

    count: Tensor
    mean: Tensor
    var: Tensor
    shift: Tensor
    scale: Tensor
    native_buffers = ("shift", "scale")
    """Buffers that the native core reads in addition to parameters."""

    def __init__(self, shape: tuple[int, ...] = (), clip: float | None = None) -> None:
        super().__init__()
        self.clip = clip
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))
        self.register_buffer("mean", torch.zeros(shape, dtype=torch.float64))
        self.register_buffer("var", torch.ones(shape, dtype=torch.float64))
        # Used in the hot path; derived from the moments, so not part of a checkpoint.
        self.register_buffer("shift", torch.zeros(shape), persistent=False)
        self.register_buffer("scale", torch.ones(shape), persistent=False)

    def check_state(self, saved: Saved) -> None:
        """Refuse moments that no samples have."""
        for name in ("count", "var"):
            if (saved[name].value < 0).any():
                raise CheckpointError(f"{saved.path}.{name} must not be negative")

    def forward(self, values: Tensor) -> Tensor:
        normalized = (values - self.shift) / self.scale
        return normalized if self.clip is None else normalized.clamp(-self.clip, self.clip)

    def decode(self, normalized: Tensor) -> Tensor:
        """Back to raw units (without the clip)."""
        return normalized * self.scale + self.shift

    def absorb(self, samples: Tensor) -> None:
        """Merge samples `[B, ...]` into the statistics."""
        with torch.no_grad():
            self.merge(Moments.of(samples))

    @torch.no_grad()
    def merge(self, moments: Moments) -> None:
        """Merge moments into the statistics."""
        merged = Moments(self.count, self.mean, self.var).merge(moments)
        self.count.copy_(merged.count)
        self.mean.copy_(merged.mean)
        self.var.copy_(merged.var)
        self.refresh()

    def refresh(self) -> None:
        """Update the derived buffers from the moments."""
        self.shift.copy_(self.mean)
        self.scale.copy_((self.var + EPSILON).sqrt())

    def native(self, plan: PlanBuilder) -> Plain:
        return {"normalizer": plan.name(self), "clip": math.inf if self.clip is None else self.clip}

    def _load_from_state_dict(self, *args: object, **kwargs: object) -> None:
        super()._load_from_state_dict(*args, **kwargs)
        self.refresh()
