"""The policy protocol, and the actor-critic that the config describes."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from surefoot.core.config import NormalizeConfig, PolicyConfig
from surefoot.core.errors import ConfigError, PolicyError
from surefoot.core.moments import ObsMoments
from surefoot.core.records import Obs, State
from surefoot.core.registry import nearest
from surefoot.core.specs import ArraySpec, ObsSpec
from surefoot.core.tree import tree_map
from surefoot.policies.critics import Critic, critics
from surefoot.policies.distributions import Distribution, DistributionHead, build_head
from surefoot.policies.encoders import build_encoder
from surefoot.policies.networks import MLP, orthogonal_
from surefoot.policies.preprocess import Preprocess

EncoderFactory = Callable[[ObsSpec], nn.Module]
"""A user's own encoder: from the prepared spec to a module that gives features [B, F]."""


@dataclass(frozen=True)
class PolicyOutput:
    """All that acting and learning need of one forward pass."""

    distribution: Distribution
    prediction: Tensor  # the critic's own form, for its loss
    value: Tensor  # [B] raw units
    state: State


class Policy(nn.Module):
    """What the collector, the learner and `predict` ask of a policy. Subclass it to bring your own.

    `forward` must be pure: everything it finds out is in the PolicyOutput.
    """

    head: DistributionHead
    critic: Critic

    def forward(self, obs: Obs, state: State, episode_start: Tensor, action_mask: Tensor | None = None) -> PolicyOutput:
        """Distribution, value and next state of a batch of raw observations."""
        raise NotImplementedError

    def initial_state(self, num_rows: int) -> State:
        """The state at the start of an episode; empty without memory."""
        return ()

    def absorb(self, obs: Obs, moments: ObsMoments | None = None) -> None:
        """Merge a rollout's valid observations `[B, ...]` into running statistics, or their moments if known."""
        if moments is None:
            self.absorb_obs(obs)
        else:
            self.absorb_moments(moments)

    def absorb_obs(self, obs: Obs) -> None:
        """Merge a rollout's valid observations `[B, ...]` into running statistics, if there are any."""

    def absorb_moments(self, moments: ObsMoments) -> None:
        """The same from their moments by key; only collectors that know the policy by its exact type give these."""


class Body(nn.Module):
    """Encoder and trunk over the observation keys it is given."""

    def __init__(self, encoder: nn.Module, size: int, keys: Sequence[str] | None, config: PolicyConfig):
        super().__init__()
        self.encoder = encoder
        self.trunk = MLP(size, config.hidden, config.activation)
        self.output_size = self.trunk.output_size
        self._keys = keys

    def forward(self, obs: Obs) -> Tensor:
        if self._keys is not None and isinstance(obs, dict):
            obs = {key: obs[key] for key in self._keys}
        latent: Tensor = self.trunk(self.encoder(obs))
        return latent


class ActorCritic(Policy):
    """Preprocess -> body -> distribution head, and the same body or its own -> critic."""

    def __init__(
        self,
        obs_spec: ObsSpec,
        action_spec: ArraySpec,
        config: PolicyConfig,
        normalize: NormalizeConfig,
        encoder: EncoderFactory | None = None,
    ) -> None:
        super().__init__()
        self._config = config
        self.preprocess = Preprocess(obs_spec, normalize)
        actor_keys = _actor_keys(self.preprocess.spec, config)
        self.actor_body = self._build_body(actor_keys, encoder)
        self.critic_body = None if config.share_trunk else self._build_body(None, encoder)
        self.head = build_head(self.actor_body.output_size, action_spec, config)
        critic_size = (self.critic_body or self.actor_body).output_size
        self.critic = critics[config.critic](critic_size, config, normalize)

    def forward(self, obs: Obs, state: State, episode_start: Tensor, action_mask: Tensor | None = None) -> PolicyOutput:
        prepared = self.preprocess(obs)
        with self._autocast():
            actor_latent = self.actor_body(prepared)
            critic_latent = actor_latent if self.critic_body is None else self.critic_body(prepared)
        prediction = self.critic(critic_latent.float())
        distribution = self.head(actor_latent.float(), action_mask)
        return PolicyOutput(distribution, prediction, self.critic.value(prediction), state)

    def absorb_obs(self, obs: Obs) -> None:
        self.preprocess.absorb(obs)

    def absorb_moments(self, moments: ObsMoments) -> None:
        self.preprocess.merge(moments)

    def _build_body(self, keys: Sequence[str] | None, own_encoder: EncoderFactory | None) -> Body:
        config, spec = self._config, self.preprocess.spec
        if keys is not None and isinstance(spec, dict):
            spec = {key: spec[key] for key in keys}
        if own_encoder is not None:
            encoder = own_encoder(spec)
        else:
            encoder = build_encoder(spec, config.encoder, config)
        body = Body(encoder, _feature_size(encoder, spec), keys, config)
        if config.orthogonal_init:
            orthogonal_(body if own_encoder is None else body.trunk)
        return body

    def _autocast(self) -> AbstractContextManager[object]:
        # In the policy and not in the learner, so that acting and learning see the same numbers (S7).
        if self._config.precision == "float32":
            return nullcontext()
        return torch.autocast("cpu", dtype=torch.bfloat16)


@torch.no_grad()
def _feature_size(encoder: nn.Module, spec: ObsSpec) -> int:
    """How many features an encoder gives, found by asking it."""
    features = encoder(tree_map(lambda part: torch.zeros(1, *part.shape), spec))
    if not isinstance(features, Tensor) or features.dim() != 2:
        raise PolicyError(f"an encoder must give features [batch, size]; {type(encoder).__name__} does not")
    return features.shape[1]


def _actor_keys(spec: ObsSpec, config: PolicyConfig) -> list[str] | None:
    """The keys the actor sees, or None for all of them."""
    if not config.critic_obs:
        return None
    problems = []
    if config.share_trunk:
        problems.append("policy.critic_obs: needs policy.share_trunk false, else the actor sees it too")
    if not isinstance(spec, dict):
        problems.append("policy.critic_obs: the observation is not a dict, so it has no keys")
        spec = {}
    for key in config.critic_obs:
        if spec and key not in spec:
            problems.append(f"policy.critic_obs: no observation '{key}'{nearest(key, spec)}")
    actor_keys = [key for key in spec if key not in config.critic_obs]
    if spec and not actor_keys:
        problems.append("policy.critic_obs: leaves the actor nothing to see")
    if problems:
        raise ConfigError(problems)
    return actor_keys
