"""PPO's steps outside the networks, once more: plain numpy in float64, written from the formulas.

Both paths of a comparison share code for these steps, so that a mistake there would be the same on both. Nothing here
uses that code.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
_WORD = 0xFFFFFFFF
_ACTIONS, _SHUFFLES = 0, 2
"""The last word of the counter, by purpose."""
_TINY = 1e-8


def philox(counter: tuple[int, ...], seed: int) -> tuple[int, ...]:
    """Four random 32-bit words (Philox4x32-10; Salmon et al. 2011), keyed by the two halves of the seed."""
    key = (seed & _WORD, seed >> 32 & _WORD)
    for _ in range(10):
        a, b = counter[0] * 0xD2511F53, counter[2] * 0xCD9E8D57
        counter = (b >> 32) ^ counter[1] ^ key[0], b & _WORD, (a >> 32) ^ counter[3] ^ key[1], a & _WORD
        key = (key[0] + 0x9E3779B9) & _WORD, (key[1] + 0xBB67AE85) & _WORD
    return counter


def random_words(seed: int, step: int, row: int, purpose: int, count: int) -> list[int]:
    """The random words of a step and row: the counter is (draw, step, row, purpose) (S13, docs/semantics.md)."""
    draws = (philox((draw, step & _WORD, row, purpose), seed) for draw in range(-(-count // 4)))
    return [word for words in draws for word in words][:count]


def action_uniforms(seed: int, steps: Iterable[int], rows: int, count: int) -> NDArray[np.float32]:
    """The uniforms `[T, N, count]` in [0, 1) that actions are sampled with: the upper 24 bits of a word."""
    words = [[random_words(seed, step, row, _ACTIONS, count) for row in range(rows)] for step in steps]
    uniforms: NDArray[np.float32] = (np.array(words, np.float64) // 2**8 / 2**24).astype(np.float32)
    return uniforms


def shuffled(seed: int, update: int, epoch: int, size: int) -> NDArray[np.int64]:
    """The order in which the units of an update are taken in an epoch: that of random words."""
    return np.argsort(random_words(seed, update, epoch, _SHUFFLES, size), kind="stable")


def episode_starts(first: Bools, ended: Bools, valid: Bools) -> Bools:
    """The steps `[T + 1, N]` that begin an episode: those after an ending or an invalid step (S1)."""
    return np.concatenate((first[None], ended | ~valid))


@dataclass(frozen=True)
class Steps:
    """What a rollout holds, `[T, N]` but `last_value` `[N]`."""

    reward: Floats
    value: Floats
    final_value: Floats
    last_value: Floats
    terminated: Bools
    truncated: Bools
    valid: Bools


def advantages(steps: Steps, gamma: float, gae_lambda: float) -> Floats:
    """A_t = d_t + gamma lambda A_{t+1} with d_t = r_t + gamma V' - V_t, row by row from the last step (S2)."""
    found = np.zeros_like(steps.reward)
    for row in range(found.shape[1]):
        following, next_value = 0.0, steps.last_value[row]
        for t in reversed(range(len(found))):
            if steps.terminated[t, row]:
                following, next_value = 0.0, 0.0
            elif steps.truncated[t, row]:
                following, next_value = 0.0, steps.final_value[t, row]
            if steps.valid[t, row]:
                delta = steps.reward[t, row] + gamma * next_value - steps.value[t, row]
                following = delta + gamma * gae_lambda * following
            else:
                following = 0.0
            found[t, row], next_value = following, steps.value[t, row]
    return found


def discounted_sums(steps: Steps, carried: Floats, gamma: float) -> tuple[Floats, Floats]:
    """R_t = gamma R_{t-1} + r_t `[T, N]`, 0 before an episode; and what the next rollout carries on."""
    sums = np.zeros_like(steps.reward)
    for t in range(len(sums)):
        sums[t] = gamma * carried + np.where(steps.valid[t], steps.reward[t], 0)
        carried = np.where(steps.terminated[t] | steps.truncated[t], 0, sums[t])
    return sums, carried


def normalized(values: Floats, among: Floats) -> Floats:
    """Zero mean and unit standard deviation (with n - 1) among some numbers; a single number stays (S9)."""
    return values if among.size < 2 else (values - among.mean()) / (among.std(ddof=1) + _TINY)


@dataclass(frozen=True)
class Pooled:
    """Count, mean and population variance of all samples so far."""

    count: float
    mean: Floats
    var: Floats

    def with_samples(self, samples: Floats) -> "Pooled":
        """The same of all samples together, from their definitions."""
        count = self.count + len(samples)
        if not count:
            return self
        mean = (self.count * self.mean + samples.sum(0)) / count
        spread = self.count * (self.var + (self.mean - mean) ** 2) + ((samples - mean) ** 2).sum(0)
        return Pooled(count, mean, spread / count)

    @property
    def deviation(self) -> Floats:
        """The standard deviation that numbers are divided by."""
        return np.sqrt(self.var + _TINY)


def scheduled(settings: Any, start: float, fraction: float) -> float | None:
    """The value of a schedule after a fraction of the run (S14); None if it depends on more than that."""
    if settings.kind == "linear":
        return start * (1 - fraction)
    if settings.kind == "cosine":
        return start * float(settings.floor + (1 - settings.floor) * (1 + math.cos(math.pi * fraction)) / 2)
    if settings.kind == "warmup":
        then = scheduled(settings.then, start, fraction)
        return None if then is None else then * min(1, fraction / settings.share)
    return start if settings.kind == "constant" else None


def policy_losses(log_ratio: Floats, advantage: Floats, clip: float) -> dict[str, float]:
    """The clipped surrogate loss, the estimate of the KL divergence, and the share of clipped samples (S8)."""
    ratio = np.exp(log_ratio)
    gain = np.minimum(ratio * advantage, np.clip(ratio, 1 - clip, 1 + clip) * advantage)
    return {
        "surrogate/loss": -gain.mean(),
        "surrogate/approx_kl": (ratio - 1 - log_ratio).mean(),
        "surrogate/clip_fraction": (np.abs(ratio - 1) > clip).mean(),
    }


def value_loss(value: Floats, old: Floats, returns: Floats, clip: float | None) -> float:
    """Squared error, or the larger one of value and clipped value (S8)."""
    error = (value - returns) ** 2
    if clip is not None:
        error = np.maximum(error, (old + np.clip(value - old, -clip, clip) - returns) ** 2)
    return float(error.mean())


@dataclass
class AdamW:
    """Adam (Kingma and Ba 2015) after clipping the norm; weight decay is part of the gradient, or decoupled."""

    betas: tuple[float, float]
    epsilon: float
    decay: float
    is_decoupled: bool
    max_norm: float
    count: int = 0
    mean: Any = 0.0
    square: Any = 0.0

    def step(self, weights: Floats, gradient: Floats, lr: float) -> Floats:
        """The weights after a step."""
        gradient = gradient * min(1.0, self.max_norm / (float(np.linalg.norm(gradient)) + 1e-6))
        if self.is_decoupled:
            weights = weights * (1 - lr * self.decay)
        else:
            gradient = gradient + self.decay * weights
        self.count += 1
        self.mean = self.betas[0] * self.mean + (1 - self.betas[0]) * gradient
        self.square = self.betas[1] * self.square + (1 - self.betas[1]) * gradient**2
        mean, square = (
            moment / (1 - beta**self.count) for moment, beta in zip((self.mean, self.square), self.betas, strict=True)
        )
        found: Floats = weights - lr * mean / (np.sqrt(square) + self.epsilon)
        return found
