"""Attacks on observations: small perturbations that change a policy's action distributions as much as possible.

Zhang et al. 2020, "Robust Deep Reinforcement Learning against Adversarial Perturbations on State Observations":
maximize KL(pi(s) || pi(s + delta)) with |delta| <= epsilon for every element, by ascent along the sign of the gradient.
The gradient is zero at delta = 0, where the divergence is smallest, so the ascent starts at a random point.

Deltas are in the units of `Policy.obs_units`: standard deviations of normalized observations, raw units of others.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from surefoot.data.records import Obs, State
from surefoot.data.tree import tree_items
from surefoot.errors import ConfigError, PolicyError
from surefoot.output.quoted import quoted
from surefoot.philox import Stream, uniforms
from surefoot.policies.distributions import Distribution
from surefoot.policies.policy import Policy
from surefoot.settings.registry import nearest

METHODS = ("fgsm", "pgd")
LARGEST = 1e9
"""Limit of epsilon and of the step size: far from where float32 overflows."""
MOST_STEPS = 1000
_TRAVEL = 2.5
"""Sum of the steps of PGD in epsilons, if not configured: enough to cross the ball (Madry et al. 2018)."""


@dataclass(frozen=True)
class Attack:
    """The radius of the ball and how to search it.

    `pgd` (projected gradient descent) takes `steps` steps of `step_size` epsilons, by default 2.5 / steps. `fgsm` (fast
    gradient sign method) takes one step to a corner of the ball.
    """

    method: str
    epsilon: float
    steps: int = 10
    step_size: float | None = None

    def __post_init__(self) -> None:
        problems = []
        if self.method not in METHODS:
            known = f"{nearest(str(self.method), METHODS)} (known: {', '.join(METHODS)})"
            problems.append(f"attack: unknown method {quoted(self.method)}{known}")
        if not _is_number(self.epsilon):
            problems.append(f"epsilon: must be a number from 0 to {LARGEST:g} (got {quoted(self.epsilon)})")
        if not isinstance(self.steps, int) or isinstance(self.steps, bool) or not 1 <= self.steps <= MOST_STEPS:
            problems.append(f"attack steps: must be a whole number from 1 to {MOST_STEPS} (got {quoted(self.steps)})")
        if self.step_size is not None and (not _is_number(self.step_size) or self.step_size == 0):
            problems.append(f"attack step size: must be above 0 and at most {LARGEST:g} (got {quoted(self.step_size)})")
        if problems:
            raise ConfigError(problems)

    def step_lengths(self) -> list[float]:
        """The length of each step."""
        if self.method == "fgsm":
            return [2 * self.epsilon]  # from any point of the ball to its border
        return [self.epsilon * (self.step_size or _TRAVEL / self.steps)] * self.steps


class Neighborhood:
    """The observations around given ones, and how a policy acts on them.

    `inputs` are the arguments of the policy. In packed sequences all steps are moved together, and each delta also
    changes the hidden states of later steps.
    """

    def __init__(self, policy: Policy, inputs: tuple[Any, ...]) -> None:
        self._policy, (self._obs, *self._others) = policy, inputs
        self._units = policy.obs_units(self._obs)
        if not self._units:
            raise PolicyError(
                "the observation has no continuous part to perturb: images, discrete and binary observations are not"
                " attacked; remove the attack or the adversary term"
            )
        self._sizes = [math.prod(leaf.shape[1:]) for key, leaf in tree_items(self._obs) if key in self._units]
        with torch.no_grad():
            self._clean: Distribution = policy(*inputs).distribution

    def obs(self, delta: Tensor) -> Obs:
        """The observations moved by `delta` `[B, elements]`."""
        parts = iter(delta.split(self._sizes, dim=1))
        moved = {
            key: leaf + next(parts).view_as(leaf) * self._units[key] if key in self._units else leaf
            for key, leaf in tree_items(self._obs)
        }
        return moved if isinstance(self._obs, dict) else moved[""]

    def divergence(self, delta: Tensor) -> Tensor:
        """KL(pi(s) || pi(s + delta)) of each sample `[B]`; the gradient does not reach pi(s)."""
        return self._clean.kl_divergence(self._policy(self.obs(delta), *self._others).distribution)

    def start(self, seed: int, count: int, epsilon: float) -> Tensor:
        """A random point of the ball for each sample, which depends only on the seed, a counter and its row."""
        leaf = next(leaf for key, leaf in tree_items(self._obs) if key in self._units)
        drawn = uniforms(seed, [count], np.arange(len(leaf)), sum(self._sizes), Stream.ATTACK)[0]
        return epsilon * (2 * torch.from_numpy(drawn).to(leaf.dtype).to(leaf.device) - 1)

    @torch.enable_grad()
    def worst(self, start: Tensor, attack: Attack) -> Tensor:
        """The delta that the attack finds; no gradient reaches the policy's parameters."""
        delta = start
        for length in attack.step_lengths():
            delta = delta.detach().requires_grad_()
            (slope,) = torch.autograd.grad(self.divergence(delta).sum(), delta)
            delta = (delta + length * slope.sign()).clamp(-attack.epsilon, attack.epsilon)
        return delta.detach()


def attacker(policy: Policy, attack: Attack, seed: int) -> Callable[[Obs, State, Tensor, Tensor | None], Obs]:
    """Attacks a policy while it acts, with its current hidden state; the same seed gives the same perturbations."""
    steps: Iterator[int] = itertools.count()

    def perturb(obs: Obs, state: State, episode_start: Tensor, action_mask: Tensor | None) -> Obs:
        around = Neighborhood(policy, (obs, state, episode_start, action_mask))
        return around.obs(around.worst(around.start(seed, next(steps), attack.epsilon), attack))

    return perturb


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= LARGEST
