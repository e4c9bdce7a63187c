"""The actor-critic that the config describes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from surefoot.data.moments import ObsMoments
from surefoot.data.records import Obs, State
from surefoot.data.specs import ArraySpec, ObsSpec
from surefoot.data.tree import tree_items, tree_map
from surefoot.errors import ConfigError, PolicyError, SurefootError
from surefoot.machine.torch_defaults import autocast
from surefoot.output.failures import brief
from surefoot.policies.critics import critics
from surefoot.policies.distributions import build_head
from surefoot.policies.encoders import build_encoder
from surefoot.policies.encoders.none import unread_keys
from surefoot.policies.memory import memories
from surefoot.policies.native_parts import Plain, PlanBuilder
from surefoot.policies.networks import MLP, orthogonal_
from surefoot.policies.normalizer import RunningNormalizer
from surefoot.policies.policy import Policy, PolicyOutput
from surefoot.policies.preprocess import Preprocess
from surefoot.settings.config import Activation, NormalizeConfig, PolicyConfig
from surefoot.settings.registry import nearest

EncoderFactory = Callable[[ObsSpec], nn.Module]
"""A custom encoder: a function from the prepared spec to a module that returns features [B, F]."""


@dataclass(frozen=True)
class Latents:
    """The outputs of a body."""

    remembered: Tensor  # after the memory
    latent: Tensor  # after the trunk
    state: State


class Body(nn.Module):
    """Encoder, memory and trunk over the given observation keys."""

    def __init__(
        self,
        encoder: nn.Module,
        size: int,
        keys: Sequence[str] | None,
        hidden: Sequence[int],
        config: PolicyConfig,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.memory = memories[config.memory.kind](size, config.memory)
        self.trunk = MLP(self.memory.output_size, hidden, config.activation)
        self.output_size = self.trunk.output_size
        self._keys = keys

    def forward(self, obs: Obs, state: State, batch_sizes: Tensor | None) -> Latents:
        features, state = self.memory(self.encoder(_seen(obs, self._keys)), state, batch_sizes)
        return Latents(features, self.trunk(features), state)

    def native(self, plan: PlanBuilder) -> Plain:
        return {
            "encoders": plan.part("encoder", self.encoder),
            "memory": plan.part("memory", self.memory),
            "takes_actor_memory": False,
            "trunk": plan.part("network", self.trunk),
        }


class Branch(nn.Module):
    """The trunk of a critic over the actor's memory and the observations that only the critic sees."""

    def __init__(
        self,
        encoder: nn.Module | None,
        size: int,
        keys: Sequence[str],
        hidden: Sequence[int],
        activation: Activation,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.trunk = MLP(size, hidden, activation)
        self.output_size = self.trunk.output_size
        self._keys = keys

    def forward(self, obs: Obs, remembered: Tensor) -> Tensor:
        if self.encoder is not None:
            remembered = torch.cat((remembered, self.encoder(_seen(obs, self._keys))), dim=1)
        latent: Tensor = self.trunk(remembered)
        return latent

    def native(self, plan: PlanBuilder) -> Plain:
        return {
            "encoders": [] if self.encoder is None else plan.part("encoder", self.encoder),
            "memory": {"kind": "none"},
            "takes_actor_memory": True,
            "trunk": plan.part("network", self.trunk),
        }


class ActorCritic(Policy):
    """Preprocess -> body -> distribution head; and the same body, a branch of it or another -> critic."""

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
        _check_encoder_keys(obs_spec, config)
        self._unread = unread_keys(obs_spec, config)
        self.preprocess = Preprocess(obs_spec, normalize, self._unread)
        self._actor_keys = _actor_keys(self.preprocess.spec, config)
        self.actor_body = self._build_body(self._actor_keys, encoder, config.hidden)
        self._actor_parts = len(self.actor_body.memory.initial_state(1))
        critic = critics[config.critic.kind]
        self.critic_body = self._build_critic_body(encoder, () if critic.owns_trunk else config.sizes_of_critic)
        self.shares_parameters = not isinstance(self.critic_body, Body) or bool(
            {*self.actor_body.parameters()} & {*self.critic_body.parameters()}  # own encoders may be one
        )
        self.head = build_head(self.actor_body.output_size, action_spec, config)
        self.critic = critic((self.critic_body or self.actor_body).output_size, config, normalize)

    def forward(
        self,
        obs: Obs,
        state: State,
        episode_start: Tensor,
        action_mask: Tensor | None = None,
        batch_sizes: Tensor | None = None,
    ) -> PolicyOutput:
        state = _forgotten(state, episode_start)
        prepared = self.preprocess(obs)
        # In the policy, not in the learner, so that acting and learning give the same numbers (S7, docs/semantics.md).
        with autocast(episode_start.device, self._config.precision == "bfloat16"):
            actor: Latents = self.actor_body(prepared, state[: self._actor_parts], batch_sizes)
            value_latent, critic_state = actor.latent, state[:0]
            if isinstance(self.critic_body, Branch):
                value_latent = self.critic_body(prepared, actor.remembered)
            elif self.critic_body is not None:
                critic: Latents = self.critic_body(prepared, state[self._actor_parts :], batch_sizes)
                value_latent, critic_state = critic.latent, critic.state
        prediction = self.critic(value_latent.float())
        distribution = self.head(actor.latent.float(), action_mask)
        return PolicyOutput(distribution, prediction, self.critic.value(prediction), actor.state + critic_state)

    def initial_state(self, num_rows: int) -> State:
        state: State = self.actor_body.memory.initial_state(num_rows)
        if isinstance(self.critic_body, Body):
            state += self.critic_body.memory.initial_state(num_rows)
        return state

    @property
    def actor_parts(self) -> int:
        return self._actor_parts

    def state_names(self) -> tuple[str, ...]:
        names = self.actor_body.memory.state_names
        if not isinstance(self.critic_body, Body):
            return names
        return (*(f"actor_{name}" for name in names), *(f"critic_{name}" for name in names))

    def part_of(self, parameter: str) -> str:
        module, _, name = parameter.partition(".")
        part = name.partition(".")[0]
        if module == "critic":
            return self.critic.part_of(name)
        if module == "critic_body":
            return "critic" if part == "trunk" else f"critic_{part}"
        if module == "actor_body" and part != "trunk":
            return part
        return "trunk" if module == "actor_body" and self.critic_body is None else "actor"

    def obs_normalizers(self) -> dict[str, RunningNormalizer]:
        found = {key: self.preprocess.normalizer_of(key) for key, _ in tree_items(self.preprocess.spec)}
        return {key: normalizer for key, normalizer in found.items() if normalizer is not None}

    def obs_units(self, obs: Obs) -> dict[str, Tensor]:
        seen = dict(tree_items(_seen(obs, self._actor_keys)))
        return {
            key: unit for key, unit in super().obs_units(obs).items() if key in seen and self.preprocess.is_box(key)
        }

    def unread_obs(self) -> frozenset[str]:
        return self._unread

    def absorb_obs(self, obs: Obs) -> None:
        self.preprocess.absorb(obs)

    def absorb_moments(self, moments: ObsMoments) -> None:
        self.preprocess.merge(moments)

    def _build_body(
        self, keys: Sequence[str] | None, own_encoder: EncoderFactory | None, hidden: Sequence[int]
    ) -> Body:
        encoder, size = self._build_encoder(keys, own_encoder)
        body = Body(encoder, size, keys, hidden, self._config)
        if self._config.orthogonal_init:
            orthogonal_(body.trunk)
            body.memory.orthogonal_()
        return body

    def _build_critic_body(self, own_encoder: EncoderFactory | None, hidden: Sequence[int]) -> Body | Branch | None:
        config = self._config
        if config.share_trunk:
            if config.critic_hidden is not None:
                raise ConfigError(
                    ["policy.critic_hidden: set policy.share_trunk to false: a shared trunk has one size"]
                )
            return None
        if not config.share_memory or config.memory.kind == "none":
            return self._build_body(None, own_encoder, hidden)
        keys = config.critic_obs
        encoder, size = self._build_encoder(keys, own_encoder) if keys else (None, 0)
        branch = Branch(encoder, self.actor_body.memory.output_size + size, keys, hidden, config.activation)
        if config.orthogonal_init:
            orthogonal_(branch.trunk)
        return branch

    def _build_encoder(self, keys: Sequence[str] | None, own_encoder: EncoderFactory | None) -> tuple[nn.Module, int]:
        config, spec = self._config, _seen(self.preprocess.spec, keys)
        encoder = build_encoder(spec, config.encoder, config) if own_encoder is None else own_encoder(spec)
        if config.orthogonal_init and own_encoder is None:
            orthogonal_(encoder)
        return encoder, _feature_size(encoder, spec)


def _seen(obs: Any, keys: Sequence[str] | None) -> Any:
    """The observations or specs with the given keys; None for all."""
    return {key: obs[key] for key in keys} if keys is not None and isinstance(obs, dict) else obs


def _forgotten(state: State, episode_start: Tensor) -> State:
    """Zero the state of rows or sequences that start an episode, before the cell uses it (S6)."""
    return tuple(
        tensor.masked_fill(episode_start[: tensor.shape[0]].view(-1, *(1,) * (tensor.dim() - 1)), 0.0)
        for tensor in state
    )


@torch.no_grad()
def _feature_size(encoder: nn.Module, spec: ObsSpec) -> int:
    """The number of features of an encoder, found by running it."""
    try:
        features = encoder(tree_map(lambda leaf: torch.zeros(1, *leaf.shape), spec))
    except SurefootError:
        raise
    except Exception as error:  # of a user's module
        raise PolicyError(
            f"the encoder {type(encoder).__name__} cannot read {_described(spec, encoder)}: {brief(error)}"
        ) from error
    if not isinstance(features, Tensor) or features.dim() != 2:
        raise PolicyError(f"an encoder must return features of shape [batch, size]; {type(encoder).__name__} does not")
    return features.shape[1]


def _described(spec: ObsSpec, encoder: nn.Module) -> str:
    """The batch that an encoder gets; images have their channels last if the env's have, unlike in torch's layers."""
    convolves = any(isinstance(module, nn.Conv2d) for module in encoder.modules())
    shapes = ", ".join(f"{key} {['B', *leaf.shape]}".strip().replace("'", "") for key, leaf in tree_items(spec))
    images = [leaf.shape for _, leaf in tree_items(spec) if leaf.kind == "image" and len(leaf.shape) == 3]
    advice = " with channels last, which convolutions of torch need first: call obs.permute(0, 3, 1, 2)"
    return f"observations of shape {shapes}{advice if convolves and any(one[2] < one[0] for one in images) else ''}"


def _check_encoder_keys(spec: ObsSpec, config: PolicyConfig) -> None:
    if isinstance(spec, dict):
        unknown = [key for key in config.encoders if key not in spec]
        known = ", ".join(spec)
        if unknown:
            raise ConfigError(
                [
                    f"policy.encoders.{key}: unknown observation key{nearest(key, spec)} (known: {known})"
                    for key in unknown
                ]
            )


def _actor_keys(spec: ObsSpec, config: PolicyConfig) -> list[str] | None:
    """The keys the actor sees, or None for all of them."""
    if spec == {}:
        raise ConfigError(["policy.encoders: every key has the encoder none; the networks must read at least one"])
    if not config.critic_obs:
        return None
    problems = []
    if config.share_trunk:
        problems.append(
            "policy.critic_obs: set policy.share_trunk to false, because a shared trunk shows it to the actor"
        )
    if not isinstance(spec, dict):
        problems.append("policy.critic_obs: requires a dict observation; this one has no keys")
        spec = {}
    for key in config.critic_obs:
        if key in config.encoders and config.encoders[key].kind == "none":
            problems.append(f"policy.critic_obs: '{key}' has the encoder none, so that no network reads it")
        elif spec and key not in spec:
            problems.append(f"policy.critic_obs: unknown observation key '{key}'{nearest(key, spec)}")
    actor_keys = [key for key in spec if key not in config.critic_obs]
    if spec and not actor_keys:
        problems.append("policy.critic_obs: leaves no observation for the actor; remove at least one key")
    if problems:
        raise ConfigError(problems)
    return actor_keys
