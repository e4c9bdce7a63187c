"""The policy as a player of episodes: with its recurrent state, deterministic or sampled."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from surefoot.data.records import Obs, State
from surefoot.data.tree import tree_map
from surefoot.envs.protocol import Slot
from surefoot.philox import Stream, uniforms
from surefoot.policies.policy import Policy

Perturb = Callable[[Obs, State, Tensor, Tensor | None], Obs]
"""Changes what the policy observes: from (obs, state, start, action mask), exactly what it is about to be given.

It runs without gradients; one that needs them enables them itself (`torch.enable_grad`).
"""


class Player:
    """The policy with its recurrent state; samples with counted randomness if it has a seed."""

    def __init__(self, policy: Policy, rows: int, seed: int | None, perturb: Perturb | None = None) -> None:
        self._policy, self._rows, self._seed, self._perturb = policy, rows, seed, perturb
        self._state = policy.initial_state(rows)
        self.step = 0

    def act(self, slot: Slot, start: Tensor) -> NDArray[Any]:
        """Env actions for the observations in the slot; `start` marks rows at the beginning of an episode."""
        obs, mask = _tensors(slot.obs), _mask(slot.action_mask)
        if self._perturb is not None:
            obs = self._perturb(obs, self._state, start, mask)
        output = self._policy(obs, self._state, start, mask)
        action = output.distribution.mode() if self._seed is None else output.distribution.sample(self._noise())
        self._state = output.state
        self.step += 1
        env_action: NDArray[Any] = self._policy.head.to_env(action).numpy()
        return env_action

    def _noise(self) -> Tensor:
        assert self._seed is not None
        head = self._policy.head
        drawn = uniforms(self._seed, [self.step], np.arange(self._rows), head.noise_size, Stream.EVALUATION)
        return head.noise(torch.from_numpy(drawn))[0]


def _tensors(obs: Any) -> Obs:
    # A copy: the env writes the next observation into the same memory, and a policy may keep a reference.
    tensors: Obs = tree_map(torch.tensor, obs)
    return tensors


def _mask(mask: NDArray[np.bool_] | None) -> Tensor | None:
    return None if mask is None else torch.from_numpy(mask)
