"""Known answers of Market: CVaR of its returns, and what a one-step investor should hold.

CVaR at `alpha` is the mean of the worst share `alpha` of outcomes. Of returns with mean m and standard deviation s it
is m - k * s, where k depends on their shape and on alpha only; expected shortfall is its negative.

The one-step investor chooses an exposure w >= 0 once, for the reward w * (mean + std * noise) - cost / 2 * w^2.
"""

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)


class Tail(NamedTuple):
    """The `alpha`-quantile of a return (VaR), and the mean of what is below it (CVaR)."""

    var: float
    cvar: float


class Component(NamedTuple):
    """One normal of a mixture."""

    probability: float
    mean: float
    std: float


class Constrained(NamedTuple):
    """The best exposure under a limit, and the multiplier of the limit, which is 0 if it does not bind."""

    exposure: float
    multiplier: float


def normal_tail_factor(alpha: float) -> float:
    """k of a normal return: the density at its quantile, over alpha."""
    normal = NormalDist()
    return normal.pdf(normal.inv_cdf(alpha)) / alpha


def student_t_tail_factor(alpha: float, degrees: float) -> float:
    """k of a Student t return of variance 1: f(t) / alpha * (v + t^2) / (v - 1) / sqrt(v / (v - 2)), t its quantile."""
    quantile = student_t_quantile(alpha, degrees)
    falls = math.pow(1.0 + quantile**2 / degrees, -(degrees + 1.0) / 2.0)
    density = _student_t_scale(degrees) / math.sqrt(degrees) * falls
    mean_below = density / alpha * (degrees + quantile**2) / (degrees - 1.0)
    return mean_below / math.sqrt(degrees / (degrees - 2.0))


def student_t_quantile(alpha: float, degrees: float) -> float:
    """The quantile of the plain t, whose variance is v / (v - 2)."""
    return _root(lambda t: _student_t_cdf(t, degrees) - alpha, -1.0, 1.0)


def mixture_tail(components: Sequence[Component], alpha: float) -> Tail:
    """Of a mixture of normals: sum p F(z) = alpha gives the quantile q, with z = (q - m) / s; CVaR follows from it."""
    normal = NormalDist()

    def share_below(quantile: float) -> float:
        return sum(p * normal.cdf((quantile - mean) / std) for p, mean, std in components)

    widest = max(abs(mean) + std for _, mean, std in components)
    var = _root(lambda quantile: share_below(quantile) - alpha, -widest, widest)
    below = 0.0
    for p, mean, std in components:
        z = (var - mean) / std
        below += p * (mean * normal.cdf(z) - std * normal.pdf(z))
    return Tail(var, below / alpha)


def best_exposure(mean: float, std: float, cost: float, factor: float, weight: float) -> float:
    """The w that maximizes (1 - weight) * mean + weight * CVaR of the reward; `factor` is k."""
    return max(0.0, (mean - weight * std * factor) / cost)


def limited_exposure(mean: float, std: float, cost: float, factor: float, limit: float) -> Constrained:
    """The w with the best mean reward among those with an expected shortfall of at most `limit`.

    If the limit binds, w * (std * k - mean) + cost / 2 * w^2 = limit, and the multiplier is the mean lost per unit of
    shortfall.
    """
    slope = std * factor - mean
    exposure = (math.sqrt(slope**2 + 2.0 * cost * limit) - slope) / cost
    if exposure >= mean / cost:
        return Constrained(mean / cost, 0.0)
    return Constrained(exposure, (mean - cost * exposure) / (slope + cost * exposure))


def _student_t_scale(degrees: float) -> float:
    return math.exp(math.lgamma((degrees + 1.0) / 2.0) - math.lgamma(degrees / 2.0)) / math.sqrt(math.pi)


def _student_t_cdf(t: float, degrees: float) -> float:
    """With t = sqrt(v) tan(angle) the density is a power of the cosine: smooth on a short interval."""
    angle = math.atan(t / math.sqrt(degrees))
    area = 0.5 * angle * float(_WEIGHTS @ np.cos(0.5 * angle * (_NODES + 1.0)) ** (degrees - 1.0))
    return 0.5 + _student_t_scale(degrees) * area


def _root(of: Callable[[float], float], low: float, high: float) -> float:
    """Where an increasing function is 0."""
    while of(low) > 0.0:
        low *= 2.0
    while of(high) < 0.0:
        high *= 2.0
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (low, middle) if of(middle) > 0.0 else (middle, high)
    return high
