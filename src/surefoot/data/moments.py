"""Mergeable running moments, and masked means (S5, S10, docs/semantics.md)."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Moments:
    """Count, mean and population variance of samples seen so far, in float64."""

    count: Tensor
    mean: Tensor
    var: Tensor

    @staticmethod
    def of(samples: Tensor) -> "Moments":
        """Moments over the first axis."""
        samples = samples.double()
        count = samples.new_full((), float(samples.shape[0]))
        if samples.shape[0] == 0:
            zero = samples.new_zeros(samples.shape[1:])
            return Moments(count, zero, zero)
        return Moments(count, samples.mean(0), samples.var(0, unbiased=False))

    def merge(self, other: "Moments") -> "Moments":
        """Moments of both sets together (Chan, Golub and LeVeque 1979); the order does not matter."""
        count = self.count + other.count
        if count == 0:
            return self
        delta = other.mean - self.mean
        mean = self.mean + delta * (other.count / count)
        spread = delta.square() * (self.count * other.count / count)
        return Moments(count, mean, (self.var * self.count + other.var * other.count + spread) / count)


ObsMoments = Mapping[str, Moments]
"""Moments of the observations, by key."""


def masked_mean(values: Tensor, valid: Tensor) -> Tensor:
    """Mean over the valid elements, summed in float64 so that the mean of equal numbers is exactly that number."""
    return (torch.where(valid.bool(), values, 0).sum(dtype=torch.float64) / valid.sum()).to(values.dtype)


def masked_std(values: Tensor, valid: Tensor) -> Tensor:
    """Unbiased standard deviation over the valid elements (ddof 1, as torch does)."""
    centered = torch.where(valid.bool(), values - masked_mean(values, valid), 0)
    return (centered.square().sum() / (valid.sum() - 1)).sqrt()


def normalized(values: Tensor, valid: Tensor | None = None, whole: Tensor | None = None) -> Tensor:
    """Zero mean and unit standard deviation over the valid elements; a single element is unchanged. No device sync.

    If the values are a part of something, it is the whole that has zero mean and unit standard deviation.
    """
    if valid is None:  # nothing to leave out, and a few small operations less
        whole = values if whole is None else whole
        mean = whole.mean(dtype=_widest(whole)).to(values.dtype)
        return (values - mean) / (whole.std() + 1e-8) if whole.numel() > 1 else values
    scaled = (values - masked_mean(values, valid)) / (masked_std(values, valid) + 1e-8)
    return torch.where(valid.sum() > 1, scaled, values)


def _widest(values: Tensor) -> torch.dtype:
    """float64, except on Apple GPUs, which do not have it."""
    return torch.float32 if values.device.type == "mps" else torch.float64


def explained_variance(predicted: Tensor, target: Tensor) -> Tensor:
    """1 - Var(target - predicted) / Var(target); NaN when the targets are constant, so that it is logged as missing."""
    predicted, target = predicted.double(), target.double()
    variance = target.var(unbiased=False)
    explained = 1 - (target - predicted).var(unbiased=False) / variance
    return torch.where(variance > 0, explained, torch.nan)
