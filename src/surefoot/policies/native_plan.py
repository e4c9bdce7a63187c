"""The description of an actor-critic for the native core; each part describes itself in its own file."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import nn

from surefoot.policies.actor_critic import ActorCritic
from surefoot.policies.critics import Critic
from surefoot.policies.native_parts import (
    NotNative,
    Plain,
    PlanBuilder,
    UnknownToCoreError,
    require_plain_modules,
    unknown,
)


@dataclass(frozen=True)
class NativePlan:
    """A plan that the core can run."""

    plain: Plain
    """The argument of the core's `Policy`."""


def plan_policy(policy: nn.Module, learns: bool = False) -> NativePlan | NotNative:
    """The plan of a policy to act or to learn with, if the core can run it."""
    try:
        return NativePlan(_plan(policy, learns))
    except UnknownToCoreError as reason:
        return NotNative(str(reason))


def native_tensors(policy: ActorCritic) -> dict[str, NDArray[np.float32]]:
    """The tensors of a planned policy by name: views of the learner's tensors."""
    tensors: dict[str, NDArray[np.float32]] = {}
    for prefix, module in policy.named_modules():  # once: with small networks, walks over modules take long
        named = dict(module._parameters) | {
            name: getattr(module, name) for name in getattr(module, "native_buffers", ())
        }
        tensors |= {f"{prefix}.{name}": tensor.detach().numpy() for name, tensor in named.items() if tensor is not None}
    return tensors


def _plan(policy: nn.Module, learns: bool) -> Plain:
    if type(policy) is not ActorCritic:
        raise unknown("policy", policy)
    config = policy._config
    require_plain_modules(policy)
    if config.precision != "float32":
        raise UnknownToCoreError(f"the native core does not support policy.precision {config.precision}")
    builder = PlanBuilder(policy, config.activation, learns)
    obs = builder.part("preprocessing", policy.preprocess)
    plan: Plain = {
        "obs": obs,
        "activation": config.activation,
        "shares_trunk": policy.critic_body is None,
        "actor": _plan_body(policy.actor_body, obs, builder),
        "head": builder.part("distribution", policy.head),
        "values": _plan_values(policy.critic, builder),
    }
    if plan["actor"]["takes_actor_memory"]:  # only a critic can share the actor's memory
        raise unknown("body", policy.actor_body)
    if policy.critic_body is not None:
        plan["critic"] = _plan_body(policy.critic_body, obs, builder)
    return plan


def _plan_values(critic: Critic, builder: PlanBuilder) -> list[Plain]:
    """As `PlanBuilder.part`: a subclass may compute something else than the class that describes itself."""
    describe = vars(type(critic)).get("native_values", Critic.native_values)
    described: list[Plain] = describe(critic, builder)
    return described


def _plan_body(body: nn.Module, obs: list[Plain], builder: PlanBuilder) -> Plain:
    plan: Plain = builder.part("body", body)
    keys = [one["key"] for one in obs]
    encoders = [{"obs": keys.index(part.pop("key")), "encoder": part} for part in plan["encoders"]]
    return plan | {"encoders": encoders}
