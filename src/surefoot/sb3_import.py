"""Imports a PPO agent of Stable-Baselines3: weights, statistics and settings, without running anything in its files."""

import io
import json
import pickle
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from surefoot.api import PPO
from surefoot.core.errors import CheckpointError
from surefoot.core.failures import brief
from surefoot.envs.make import EnvSource

LARGEST = 2**31
"""Bytes of a file inside the archive."""
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
_ARRAYS = {"numpy": ("ndarray", "dtype"), "multiarray": ("_reconstruct", "scalar"), "numeric": ("_frombuffer",)}
"""What arrays need, by the last part of numpy's modules."""


def from_sb3(path: str | Path, env: EnvSource, vec_normalize: str | Path | None = None, **settings: Any) -> PPO:
    """An agent that acts like a saved `stable_baselines3.PPO` with an MLP policy, and can be trained further.

    `vec_normalize` is the file of its VecNormalize. Hyperparameters are taken over where the archive has them as plain
    numbers; `settings` override them. The optimizer is new. Only arrays and numbers are unpickled.
    """
    data, weights = _read_archive(Path(path))
    _check_policy(data, weights, path)
    statistics = None if vec_normalize is None else _read_statistics(Path(vec_normalize))
    named = _hyperparameters(data) | _architecture(data, weights, path) | _normalization(statistics) | settings
    agent = PPO(env, preset="none", **named)
    _load_weights(agent, weights, path)
    if statistics is not None:
        _load_statistics(agent, statistics)
    return agent


def _read_archive(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    try:
        with zipfile.ZipFile(path) as archive:
            for name in ("data", "policy.pth"):
                if archive.getinfo(name).file_size > LARGEST:
                    raise CheckpointError(f"{path}: {name} is larger than 2 GB")
            data = json.loads(archive.read("data"))
            weights = torch.load(io.BytesIO(archive.read("policy.pth")), map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise CheckpointError(f"{path} does not exist") from error
    except CheckpointError:
        raise
    except Exception as error:  # a damaged or hostile archive fails in many ways
        raise CheckpointError(f"{path} is not a saved PPO agent of Stable-Baselines3: {brief(error)}") from error
    if not isinstance(data, dict) or not isinstance(weights, Mapping):
        raise CheckpointError(f"{path} is not a saved PPO agent of Stable-Baselines3")
    return data, dict(weights)


def _check_policy(data: Mapping[str, Any], weights: Mapping[str, Tensor], path: Any) -> None:
    if data.get("use_sde"):
        raise CheckpointError(f"{path} uses state-dependent exploration (gSDE), which Surefoot does not have")
    others = [name for name in weights if not _is_mlp(name)]
    if others or "action_net.weight" not in weights or "value_net.weight" not in weights:
        what = f"it has {others[0]}" if others else "its networks are missing"
        raise CheckpointError(f"{path} is not a PPO agent with an MLP policy: {what}")
    if _sizes(weights, "policy_net") != _sizes(weights, "value_net"):
        raise CheckpointError(
            f"{path} has networks of different sizes for policy and value, {_sizes(weights, 'policy_net')} and"
            f" {_sizes(weights, 'value_net')}; in Surefoot both have the sizes of policy.hidden"
        )


def _is_mlp(name: str) -> bool:
    return (
        name == "log_std"
        or re.fullmatch(r"(mlp_extractor\.(policy|value)_net\.\d+|action_net|value_net)\.(weight|bias)", name)
        is not None
    )


def _layers(weights: Mapping[str, Tensor], net: str) -> list[str]:
    """The linear layers of a network, in order."""
    pattern = re.compile(rf"mlp_extractor\.{net}\.(\d+)\.weight")
    numbers = sorted(int(match[1]) for name in weights if (match := pattern.fullmatch(name)))
    return [f"mlp_extractor.{net}.{number}" for number in numbers]


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


def _architecture(data: Mapping[str, Any], weights: Mapping[str, Tensor], path: Any) -> dict[str, Any]:
    kwargs = data.get("policy_kwargs")
    described = str(kwargs.get("activation_fn", "Tanh'>")) if isinstance(kwargs, Mapping) else "Tanh'>"
    name = described.removesuffix("'>").rpartition(".")[2]
    if name not in _ACTIVATIONS:
        raise CheckpointError(f"{path} has the activation {name}; Surefoot has {', '.join(_ACTIVATIONS)}")
    return {"policy.hidden": _sizes(weights, "policy_net"), "policy.activation": _ACTIVATIONS[name]} | (
        {"policy.distribution": "gaussian"} if "log_std" in weights else {}
    )


def _load_weights(agent: PPO, weights: Mapping[str, Tensor], path: Any) -> None:
    named: dict[str, Tensor] = {}
    for net, ours in (("policy_net", "actor_body"), ("value_net", "critic_body")):
        for number, layer in enumerate(_layers(weights, net)):
            for kind in ("weight", "bias"):
                named[f"{ours}.trunk.layers.{number}.{kind}"] = weights[f"{layer}.{kind}"]
    own = agent.policy.state_dict()
    actions = "head.mean" if "log_std" in weights else "head.logits"
    for theirs, ours in (("action_net", actions), ("value_net", "critic.head")):
        for kind in ("weight", "bias"):
            named[f"{ours}.{kind}"] = weights[f"{theirs}.{kind}"]
    if "log_std" in weights:
        floor = getattr(agent.config.policy.distribution, "std_floor", 0.0)  # Surefoot's std is floor + exp(log_std)
        named["head.log_std"] = (weights["log_std"].exp() - floor).clamp(min=1e-6).log()
    for name, value in named.items():
        if name not in own or own[name].shape != value.shape:
            raise CheckpointError(f"{path} does not fit this env: {name} has the shape {tuple(value.shape)} there")
    agent.policy.load_state_dict(own | {name: value.to(own[name].dtype) for name, value in named.items()})


def _normalization(statistics: Mapping[str, Any] | None) -> dict[str, Any]:
    if statistics is None:
        return {}
    return {
        "normalize.obs": bool(statistics.get("norm_obs")),
        "normalize.obs_clip": float(statistics.get("clip_obs", 10.0)),
        "normalize.reward": bool(statistics.get("norm_reward")),
        "normalize.reward_clip": float(statistics.get("clip_reward", 10.0)),
    }


def _load_statistics(agent: PPO, statistics: Mapping[str, Any]) -> None:
    state = agent.policy.state_dict()
    if agent.config.normalize.obs:
        for name, value in _moments(statistics, "obs_rms").items():
            key = f"preprocess.normalizers.obs.{name}"
            if state[key].shape != value.shape:
                raise CheckpointError(
                    f"the statistics of VecNormalize have the shape {tuple(value.shape)}, not {key}'s"
                )
            state[key] = value
        agent.policy.load_state_dict(state)
    if agent.config.normalize.reward:
        scorer = agent._started().scorer
        state = scorer.state()
        scorer.load_state(state | {"reward_scaler": state["reward_scaler"] | _moments(statistics, "ret_rms")})


def _moments(statistics: Mapping[str, Any], name: str) -> dict[str, Tensor]:
    saved = statistics.get(name)
    try:
        fields = vars(saved)
        return {key: torch.as_tensor(np.asarray(fields[key], dtype=np.float64)) for key in ("count", "mean", "var")}
    except (TypeError, KeyError, ValueError) as error:
        raise CheckpointError(f"the file of VecNormalize has no statistics {name} of arrays") from error


class _Inert:
    """Stands for every class of a pickle that is not an array: it keeps its state and does nothing."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        if isinstance(state, dict):
            self.__dict__.update(state)


class _ArraysOnly(pickle.Unpickler):
    """Arrays and numbers come back; everything else becomes inert, so that nothing of the file runs."""

    def find_class(self, module: str, name: str) -> Any:
        is_numpy = module in ("numpy", *(f"numpy.{core}.{part}" for core in ("core", "_core") for part in _ARRAYS))
        if is_numpy and name in _ARRAYS[module.rpartition(".")[2]]:
            return super().find_class(module, name)
        return type(name, (_Inert,), {})


def _read_statistics(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            saved = dict(vars(_ArraysOnly(file).load()))
    except FileNotFoundError as error:
        raise CheckpointError(f"{path} does not exist") from error
    except Exception as error:  # a damaged or hostile pickle fails in many ways
        raise CheckpointError(f"{path} is not a saved VecNormalize: {brief(error)}") from error
    if not {"norm_obs", "norm_reward", "obs_rms", "ret_rms"} <= saved.keys():
        raise CheckpointError(f"{path} is not a saved VecNormalize: it has no statistics")
    return saved
