"""Imports a PPO agent of Stable-Baselines3: weights, statistics and settings, without running anything in its files."""

import json
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from surefoot.api import PPO
from surefoot.call_arguments import as_path
from surefoot.data.tree import tree_items
from surefoot.envs.make import EnvSource
from surefoot.errors import CheckpointError
from surefoot.output.quoted import quoted
from surefoot.policies.actor_critic import ActorCritic
from surefoot.sb3.member import read_member, reading_foreign
from surefoot.sb3.saved_tensors import SavedTensors
from surefoot.sb3.statistics import Moments, Statistics, read_statistics
from surefoot.settings.layers import by_name, merge
from surefoot.storage.files import open_regular
from surefoot.storage.saved import is_finite, reading

_KIND = "a saved PPO agent of Stable-Baselines3"
_PLAIN = {
    "gamma": "ppo.gamma",
    "gae_lambda": "ppo.gae_lambda",
    "n_epochs": "ppo.epochs",
    "batch_size": "ppo.batch_size",
    "ent_coef": "ppo.entropy_coef",
    "vf_coef": "ppo.value_coef",
    "max_grad_norm": "ppo.max_grad_norm",
    "target_kl": "ppo.target_kl",
    "n_steps": "rollout.num_steps",
    "n_envs": "rollout.num_envs",
}
_CONSTANTS = {"lr_schedule": "optimizer.lr", "clip_range": "ppo.clip", "clip_range_vf": "ppo.clip_value"}
_CONSTANT = re.compile(r"ConstantSchedule\(val=([-+.\deE]+)\)")
_ACTIVATIONS = {"Tanh": "tanh", "ReLU": "relu", "ELU": "elu", "SiLU": "silu", "LeakyReLU": "leaky_relu", "GELU": "gelu"}


def from_sb3(path: str | Path, env: EnvSource, vec_normalize: str | Path | None = None, **settings: Any) -> PPO:
    """An agent that acts like a saved `stable_baselines3.PPO` with an MLP policy, and can be trained further.

    `vec_normalize` is the file of its VecNormalize. Hyperparameters are taken over where the archive has them as plain
    numbers; `settings` override them. The optimizer is new. Nothing in the files is executed.
    """
    with reading_foreign(path := as_path(path), _KIND):
        data, weights = _read_archive(path)
        named = _hyperparameters(data) | _architecture(data, weights)
    statistics = None if vec_normalize is None else read_statistics(as_path(vec_normalize))
    agent = PPO(env, preset="none", **merge(named | _normalization(statistics), by_name(settings)))
    with reading(path):
        _load_weights(agent, weights)
    if vec_normalize is not None and statistics is not None:
        with reading(vec_normalize):
            _load_statistics(agent, statistics)
    return agent


def _read_archive(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The settings and the weights of a policy that Surefoot has, too."""
    with open_regular(path) as file, zipfile.ZipFile(file) as archive:
        data, policy = json.loads(read_member(archive, "data")), SavedTensors(read_member(archive, "policy.pth"))
    if data.get("use_sde"):
        raise CheckpointError("it uses state-dependent exploration (gSDE), which Surefoot does not have")
    others = [name for name in policy.names if not _is_mlp(name)]
    if others or "action_net.weight" not in policy.names or "value_net.weight" not in policy.names:
        what = f"it has {quoted(others[0])}" if others else "its networks are missing"
        raise CheckpointError(f"it is not a PPO agent with an MLP policy: {what}")
    weights = policy.read()
    _check_layers(weights)
    return data, weights


def _check_layers(weights: Mapping[str, Tensor]) -> None:
    """Refuse layers that are not complete, and networks of two sizes."""
    for name, weight in weights.items():
        layer, _, kind = name.rpartition(".")
        other = f"{layer}.{'bias' if kind == 'weight' else 'weight'}"
        if kind != "log_std" and other not in weights:
            raise CheckpointError(f"{other} is missing")
        if weight.ndim != (2 if kind == "weight" else 1) or (kind == "bias" and len(weight) != len(weights[other])):
            raise CheckpointError(f"{name} has the invalid shape {tuple(weight.shape)}")


def _is_mlp(name: str) -> bool:
    layers = r"(mlp_extractor\.(policy|value)_net\.\d{1,4}|action_net|value_net)\.(weight|bias)"
    return name == "log_std" or re.fullmatch(layers, name, re.ASCII) is not None


def _layers(weights: Mapping[str, Tensor], net: str) -> list[str]:
    """The linear layers of a network, in order."""
    pattern = re.compile(rf"(mlp_extractor\.{net}\.(\d+))\.weight")
    found = [match for name in weights if (match := pattern.fullmatch(name))]
    return [match[1] for match in sorted(found, key=lambda match: int(match[2]))]


def _sizes(weights: Mapping[str, Tensor], net: str) -> list[int]:
    return [len(weights[f"{layer}.weight"]) for layer in _layers(weights, net)]


def _hyperparameters(data: Mapping[str, Any]) -> dict[str, Any]:
    """Those that are numbers, or constant schedules in their readable form."""
    found: dict[str, Any] = {}
    for theirs, ours in _PLAIN.items():
        value = data.get(theirs)
        if isinstance(value, int | float) and not isinstance(value, bool):
            found[ours] = value
    for theirs, ours in _CONSTANTS.items():
        entry = data.get(theirs)
        text = str(entry.get("value_schedule", "")) if isinstance(entry, Mapping) else ""
        if match := _CONSTANT.fullmatch(text):
            found[ours] = float(match[1])
    found["ppo.advantage_norm"] = "minibatch" if data.get("normalize_advantage", True) else "none"
    return found


def _architecture(data: Mapping[str, Any], weights: Mapping[str, Tensor]) -> dict[str, Any]:
    kwargs = data.get("policy_kwargs")
    described = str(kwargs.get("activation_fn", "Tanh'>")) if isinstance(kwargs, Mapping) else "Tanh'>"
    name = described.removesuffix("'>").rpartition(".")[2]
    if name not in _ACTIVATIONS:
        raise CheckpointError(f"it has the activation {quoted(name)}; Surefoot has {', '.join(_ACTIVATIONS)}")
    hidden, critic_hidden = _sizes(weights, "policy_net"), _sizes(weights, "value_net")
    return {"policy.hidden": hidden, "policy.activation": _ACTIVATIONS[name]} | (
        ({"policy.critic_hidden": critic_hidden} if critic_hidden != hidden else {})
        | ({"policy.distribution": "gaussian"} if "log_std" in weights else {})
    )


def _load_weights(agent: PPO, weights: Mapping[str, Tensor]) -> None:
    layers = [
        (layer, f"{ours}.trunk.layers.{number}")
        for net, ours in (("policy_net", "actor_body"), ("value_net", "critic_body"))
        for number, layer in enumerate(_layers(weights, net))
    ]
    layers += [("action_net", "head.mean" if "log_std" in weights else "head.logits"), ("value_net", "critic.head")]
    named = {f"{ours}.{kind}": f"{theirs}.{kind}" for theirs, ours in layers for kind in ("weight", "bias")}
    values = dict(weights)
    if "log_std" in weights:
        floor = getattr(agent.config.policy.distribution, "std_floor", 0.0)  # Surefoot's std is floor + exp(log_std)
        named["head.log_std"] = "log_std"
        values["log_std"] = (weights["log_std"].exp() - floor).clamp(min=1e-6).log()
    own = agent.policy.state_dict()
    for ours, theirs in named.items():
        value = values[theirs]
        if ours not in own or own[ours].shape != value.shape:
            raise CheckpointError(f"it does not fit this env: {theirs} has the shape {tuple(value.shape)} there")
        own[ours] = value.to(own[ours].dtype)
        if not is_finite(own[ours]):
            raise CheckpointError(f"{theirs} has numbers that are too large")
    agent.policy.load_state_dict(own)


def _normalization(statistics: Statistics | None) -> dict[str, Any]:
    if statistics is None:
        return {}
    return {
        "normalize.obs": statistics.normalizes_obs,
        "normalize.obs_clip": statistics.clip_obs,
        "normalize.reward": statistics.normalizes_reward,
        "normalize.reward_clip": statistics.clip_reward,
    }


def _load_statistics(agent: PPO, statistics: Statistics) -> None:
    assert isinstance(agent.policy, ActorCritic)
    preprocess = agent.policy.preprocess
    for key, _ in tree_items(preprocess.spec):
        normalizer, name = preprocess.normalizer_of(key), f"obs_rms.{key}".rstrip(".")
        if normalizer is None:
            continue
        if key not in statistics.obs:
            raise CheckpointError(
                f"it has no {name}: Surefoot normalizes every vector, or none; pass normalize={{'obs': False}}"
            )
        _check_shape(statistics.obs[key], name, tuple(normalizer.mean.shape))
        normalizer.load_state_dict(statistics.obs[key])
    if agent.config.normalize.reward and statistics.returns is not None:
        _check_shape(statistics.returns, "ret_rms", ())
        scorer = agent._started().scorer
        gamma = agent.config.ppo.gamma
        if statistics.gamma != gamma:
            raise CheckpointError(
                f"it discounts rewards with {statistics.gamma:g}, but the agent with {gamma:g}, and Surefoot scales"
                " rewards with the discount of the agent; pass the same gamma, or normalize={'reward': False}"
            )
        state = scorer.state()
        scorer.load_state(state | {"reward_scaler": state["reward_scaler"] | statistics.returns})


def _check_shape(moments: Moments, name: str, shape: tuple[int, ...]) -> None:
    found = tuple(moments["mean"].shape)
    if found != shape:
        raise CheckpointError(f"it does not fit this env: {name} has the shape {found}, not {shape}")
