"""Converts uniform to normal noise."""

import math

import torch
from torch import Tensor


def box_muller(uniforms: Tensor) -> Tensor:
    """Standard normals `[..., n]` from uniforms `[..., n]` in [0, 1), n even: neighbors form a pair.

    Computed in float64 and rounded once, so that other implementations of log and cos give the same float32.
    """
    pairs = uniforms.double().unflatten(-1, (-1, 2))
    radius = (-2 * torch.log1p(-pairs[..., 0])).sqrt()
    angle = 2 * math.pi * pairs[..., 1]
    return torch.stack((radius * angle.cos(), radius * angle.sin()), dim=-1).flatten(-2).float()
