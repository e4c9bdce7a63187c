"""Policies that are plain functions of the observation: what a rollout must hold can be said in advance."""

from collections.abc import Callable

import torch
from torch import Tensor

from surefoot.data.records import Obs, State
from surefoot.data.specs import ArraySpec
from surefoot.policies.distributions import build_head
from surefoot.policies.distributions.categorical import Categorical, masked_log_softmax
from surefoot.policies.policy import Policy, PolicyOutput
from surefoot.settings.config import PolicyConfig


def code_value(obs: Tensor) -> Tensor:
    """A counter's code plus a half: exact in float32, and never mistaken for a reward."""
    return 10_000 * obs[..., 0] + 100 * obs[..., 1] + obs[..., 2] + 0.5


def code_choice(obs: Tensor) -> Tensor:
    """A choice that depends on the place."""
    return (obs[..., 1] + obs[..., 2]).long() % 4


class KnownPolicy(Policy):
    """V(obs) and, if `choose` is given, the only choice ever taken; without it every allowed choice is as likely."""

    def __init__(
        self,
        action_spec: ArraySpec,
        value: Callable[[Tensor], Tensor] = code_value,
        choose: Callable[[Tensor], Tensor] | None = code_choice,
    ) -> None:
        super().__init__()
        self.head = build_head(1, action_spec, PolicyConfig())
        self._num_choices = action_spec.sizes[0]
        self._value, self._choose = value, choose

    def forward(self, obs: Obs, state: State, episode_start: Tensor, action_mask: Tensor | None = None) -> PolicyOutput:
        assert isinstance(obs, Tensor)
        logits = torch.zeros(len(obs), self._num_choices)
        if self._choose is not None:
            chosen = torch.nn.functional.one_hot(self._choose(obs), self._num_choices)
            logits = torch.where(chosen.bool(), 0.0, -1e9)
        value = self._value(obs)
        return PolicyOutput(Categorical(masked_log_softmax(logits, action_mask)), value, value, state)


class CountingPolicy(KnownPolicy):
    """Remembers how many steps of the episode it has seen, this one included; that is also its value."""

    def forward(self, obs: Obs, state: State, episode_start: Tensor, action_mask: Tensor | None = None) -> PolicyOutput:
        output = super().forward(obs, (), episode_start, action_mask)
        count = torch.where(episode_start, 0.0, state[0]) + 1
        return PolicyOutput(output.distribution, count, count, (count,))

    def initial_state(self, num_rows: int) -> State:
        return (torch.zeros(num_rows),)
