"""A policy that takes recorded actions.

Two implementations of a network round differently, and chaotic dynamics would turn that into different trajectories.
So the reference takes the recorded actions; it computes everything else (observations, rewards, endings, log-probs,
values) itself, with an unmodified collector.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from surefoot.data.moments import ObsMoments
from surefoot.data.records import Obs, State
from surefoot.policies.distributions import Distribution, DistributionHead
from surefoot.policies.policy import Policy, PolicyOutput

ToEnv = Callable[[Tensor], Tensor]
"""Maps raw actions to the env's range."""


@dataclass(frozen=True)
class TakesNoise(Distribution):
    """Returns the noise as its sample; everything else comes from the true distribution."""

    true: Distribution

    def sample(self, noise: Tensor) -> Tensor:
        return noise

    def mode(self) -> Tensor:
        return self.true.mode()

    def log_prob(self, action: Tensor) -> Tensor:
        return self.true.log_prob(action)

    def entropy(self) -> Tensor:
        return self.true.entropy()


class RecordedHead(DistributionHead):
    """Returns the recorded actions `[T, N, ...]` as noise."""

    def __init__(self, head: DistributionHead, actions: Tensor, to_env: ToEnv) -> None:
        torch.nn.Module.__init__(self)
        self._actions, self._to_env = actions, to_env
        self.noise_size, self.action_shape, self.action_dtype = head.noise_size, head.action_shape, head.action_dtype

    def noise(self, uniforms: Tensor) -> Tensor:
        return self._actions

    def to_env(self, action: Tensor) -> Tensor:
        return self._to_env(action)


class RecordedPolicy(Policy):
    """Takes the recorded actions; its values, log-probs and recurrent state are those of the true policy."""

    def __init__(self, policy: Policy, actions: Tensor, to_env: ToEnv) -> None:
        super().__init__()
        self._true = policy
        self.head, self.critic = RecordedHead(policy.head, actions, to_env), policy.critic

    def forward(
        self,
        obs: Obs,
        state: State,
        episode_start: Tensor,
        action_mask: Tensor | None = None,
        batch_sizes: Tensor | None = None,
    ) -> PolicyOutput:
        output: PolicyOutput = self._true(obs, state, episode_start, action_mask)  # acts only: no sequences
        return replace(output, distribution=TakesNoise(output.distribution))

    def initial_state(self, num_rows: int) -> State:
        return self._true.initial_state(num_rows)

    def absorb(self, obs: Obs, moments: ObsMoments | None = None) -> None:
        self._true.absorb(obs, moments)
