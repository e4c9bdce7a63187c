"""An actor-critic as the native core is told of it: what is computed in which order, and under which names.

Decided by exact types: a subclass may compute something else, and then only torch knows what.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from surefoot.core.config import Activation
from surefoot.core.specs import ArraySpec
from surefoot.core.tree import tree_items
from surefoot.policies.critics.scalar import ScalarCritic
from surefoot.policies.distributions.bernoulli import BernoulliHead
from surefoot.policies.distributions.beta import BetaHead
from surefoot.policies.distributions.categorical import CategoricalHead
from surefoot.policies.distributions.gaussian import GaussianHead
from surefoot.policies.distributions.multi_discrete import MultiDiscreteHead
from surefoot.policies.distributions.tanh_gaussian import TanhGaussianHead
from surefoot.policies.encoders.identity import IdentityEncoder
from surefoot.policies.encoders.mlp import MLPEncoder
from surefoot.policies.encoders.per_key import DictEncoder
from surefoot.policies.memory.gru import GRUMemory
from surefoot.policies.memory.lstm import LSTMMemory
from surefoot.policies.memory.none import NoMemory
from surefoot.policies.networks import MLP
from surefoot.policies.normalizer import RunningNormalizer
from surefoot.policies.policy import ActorCritic, Body, Branch
from surefoot.policies.preprocess import Preprocess, _module_name

Plain = dict[str, Any]


@dataclass(frozen=True)
class NativePlan:
    """A plan the core can run."""

    plain: Plain
    """What the core's `Policy` is built from."""


class _UnknownToCoreError(Exception):
    """The core does not know this; the message says what, in one line."""


def plan_policy(policy: nn.Module) -> NativePlan | str:
    """The plan of a policy, or in one line why the core does not know it."""
    try:
        return NativePlan(_plan(policy))
    except _UnknownToCoreError as reason:
        return str(reason)


def native_tensors(policy: ActorCritic) -> dict[str, NDArray[np.float32]]:
    """What the core needs of a planned policy, by name: views of the learner's own memory."""
    statistics = {
        f"{name}.{part}": getattr(module, part)
        for name, module in policy.named_modules()
        if isinstance(module, RunningNormalizer)
        for part in ("shift", "scale")
    }
    tensors: dict[str, Tensor] = {**dict(policy.named_parameters()), **statistics}
    return {name: tensor.detach().numpy() for name, tensor in tensors.items()}


def _plan(policy: nn.Module) -> Plain:
    _expect(policy, "policy", ActorCritic)
    assert isinstance(policy, ActorCritic)
    config = policy._config
    _require_plain_modules(policy)
    if config.precision != "float32":
        raise _UnknownToCoreError(f"the native core does not compute in {config.precision}")
    names = {module: name for name, module in policy.named_modules()}
    specs = dict(tree_items(policy.preprocess._raw_spec))
    _expect(policy.actor_body, "body", Body)  # only a critic branches off
    plan: Plain = {
        "obs": [_plan_obs(policy.preprocess, key, spec) for key, spec in specs.items()],
        "activation": config.activation,
        "shares_trunk": policy.critic_body is None,
        "actor": _plan_body(policy.actor_body, list(specs), names, config.activation),
        "head": _plan_head(policy.head, names),
        "value": _plan_critic(policy.critic, names),
    }
    if policy.critic_body is not None:
        plan["critic"] = _plan_body(policy.critic_body, list(specs), names, config.activation)
    return plan


def _expect(module: object, role: str, *known: type) -> None:
    if type(module) not in known:
        raise _UnknownToCoreError(f"the native core does not know the {role} {type(module).__name__}")


def _require_plain_modules(policy: nn.Module) -> None:
    for name, module in policy.named_modules():
        if module._forward_hooks or module._forward_pre_hooks:
            raise _UnknownToCoreError(f"the native core does not run the forward hooks of {name or 'the policy'}")
    for name, tensor in policy.named_parameters():
        if tensor.dtype != torch.float32 or tensor.device.type != "cpu" or not tensor.is_contiguous():
            raise _UnknownToCoreError(f"the native core takes contiguous float32 on the CPU, which {name} is not")


def _plan_obs(preprocess: Preprocess, key: str, spec: ArraySpec) -> Plain:
    _expect(preprocess, "preprocessing", Preprocess)
    if spec.kind != "box" or spec.dtype != "float32":
        part = f"the observation '{key}'" if key else "the observation"
        raise _UnknownToCoreError(f"the native core takes boxes of float32; {part} is {spec.kind} of {spec.dtype}")
    name = _module_name(key)
    if name not in preprocess.normalizers:
        return {"key": key, "size": spec.size, "normalizer": "", "clip": math.inf}
    normalizer = preprocess.normalizers[name]
    _expect(normalizer, "normalizer", RunningNormalizer)
    assert isinstance(normalizer, RunningNormalizer)
    clip = math.inf if normalizer.clip is None else normalizer.clip
    return {"key": key, "size": spec.size, "normalizer": f"preprocess.normalizers.{name}", "clip": clip}


def _plan_body(body: nn.Module, keys: list[str], names: dict[nn.Module, str], activation: Activation) -> Plain:
    _expect(body, "body", Body, Branch)
    assert isinstance(body, Body | Branch)
    memory = _plan_memory(body.memory, names) if isinstance(body, Body) else {"kind": "none"}
    return {
        "encoders": [] if body.encoder is None else _plan_encoders(body.encoder, keys, names, activation),
        "memory": memory,
        "takes_actor_memory": isinstance(body, Branch),
        "trunk": _mlp_layers(body.trunk, names, activation),
    }


def _plan_memory(memory: nn.Module, names: dict[nn.Module, str]) -> Plain:
    _expect(memory, "memory", NoMemory, GRUMemory, LSTMMemory)
    if not isinstance(memory, GRUMemory | LSTMMemory):
        return {"kind": "none"}
    cells, kind = memory.cells, "gru" if isinstance(memory, GRUMemory) else "lstm"
    _expect(cells, "cells", {"gru": nn.GRU, "lstm": nn.LSTM}[kind])
    if cells.bidirectional or not cells.bias or cells.proj_size:
        raise _UnknownToCoreError(f"the native core takes plain layers of cells, which {names[cells]} is not")
    return {"kind": kind, "layers": cells.num_layers, "hidden": cells.hidden_size, "name": names[cells]}


def _plan_encoders(
    encoder: nn.Module, keys: list[str], names: dict[nn.Module, str], activation: Activation
) -> list[Plain]:
    _expect(encoder, "encoder", IdentityEncoder, MLPEncoder, DictEncoder)
    parts = list(zip(encoder.keys, encoder.parts, strict=True)) if isinstance(encoder, DictEncoder) else [("", encoder)]
    encoders = []
    for key, part in parts:
        _expect(part, "encoder", IdentityEncoder, MLPEncoder)
        layers = _mlp_layers(part.network, names, activation) if isinstance(part, MLPEncoder) else []
        encoders.append({"obs": keys.index(key), "layers": layers})
    return encoders


def _mlp_layers(network: nn.Module, names: dict[nn.Module, str], activation: Activation) -> list[str]:
    _expect(network, "network", MLP)
    assert isinstance(network, MLP)
    if network._activation != activation:
        raise _UnknownToCoreError(
            f"the native core knows one activation for all networks; {names[network]} has another"
        )
    return [_linear(layer, names) for layer in network.layers]


def _linear(layer: nn.Module, names: dict[nn.Module, str]) -> str:
    _expect(layer, "layer", nn.Linear)
    if layer.bias is None:
        raise _UnknownToCoreError(f"the native core takes layers with a bias; {names[layer]} has none")
    return names[layer]


def _plan_critic(critic: nn.Module, names: dict[nn.Module, str]) -> Plain:
    _expect(critic, "critic", ScalarCritic)
    assert isinstance(critic, ScalarCritic)
    if critic.returns is None:
        return {"layer": _linear(critic.head, names), "returns": ""}
    _expect(critic.returns, "normalizer", RunningNormalizer)
    return {"layer": _linear(critic.head, names), "returns": names[critic.returns]}


def _plan_head(head: nn.Module, names: dict[nn.Module, str]) -> Plain:
    plan: Plain = {"std_layer": "", "log_std": "", "std_floor": 0.0, "rescale": False}
    plan |= {"low": [], "high": [], "sizes": [], "start": []}
    if isinstance(head, GaussianHead | BetaHead):
        return plan | _plan_box_head(head, names)
    _expect(head, "distribution", CategoricalHead, MultiDiscreteHead, BernoulliHead)
    assert isinstance(head, CategoricalHead | MultiDiscreteHead | BernoulliHead)
    plan["layer"] = _linear(head.logits, names)
    if isinstance(head, CategoricalHead):
        return plan | {"kind": "categorical", "sizes": [head.logits.out_features], "start": [head.start]}
    if isinstance(head, MultiDiscreteHead):
        sizes = head.present.sum(-1).tolist()
        return plan | {"kind": "multi_discrete", "sizes": sizes, "start": head.start.flatten().tolist()}
    count = head.logits.out_features
    return plan | {"kind": "bernoulli", "sizes": [2] * count, "start": [0] * count}


def _plan_box_head(head: GaussianHead | BetaHead, names: dict[nn.Module, str]) -> Plain:
    _expect(head, "distribution", GaussianHead, TanhGaussianHead, BetaHead)
    bounds = {"low": head.low.tolist(), "high": head.high.tolist()}
    if isinstance(head, BetaHead):
        return bounds | {"kind": "beta", "layer": _linear(head.concentrations, names)}
    return bounds | {
        "kind": "tanh_gaussian" if isinstance(head, TanhGaussianHead) else "gaussian",
        "layer": _linear(head.mean, names),
        "std_layer": "" if head.std_layer is None else _linear(head.std_layer, names),
        "log_std": f"{names[head]}.log_std",
        "std_floor": head.std_floor,
        "rescale": head.rescale,
    }
