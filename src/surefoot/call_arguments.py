"""Arguments of an agent's methods: checks that name the argument, and what follows from them."""

import os
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from surefoot.envs.given import given
from surefoot.envs.make import EnvSource, check_source, fixed_envs
from surefoot.errors import CheckpointError, ConfigError
from surefoot.output.quoted import quoted
from surefoot.policies.actor_critic import EncoderFactory
from surefoot.policies.policy import Policy
from surefoot.presets import load_preset, preset_names
from surefoot.settings.config import Config
from surefoot.settings.layers import Raw
from surefoot.settings.synonyms import of_call
from surefoot.watching.playing import Program

Pathlike = str | Path
SB3_POLICIES = ("MlpPolicy", "CnnPolicy", "MultiInputPolicy", "MlpLstmPolicy", "CnnLstmPolicy")
"""First arguments of Stable-Baselines3's agents."""

_OF_IDS = {
    "kwargs": "create it with these arguments",
    "eval_kwargs": "pass evaluate(env=...) another one",
    "max_episode_steps": "wrap it in gymnasium.wrappers.TimeLimit",
}
"""Settings of envs that are created by id, and what to do instead for others."""


def source_settings(env: EnvSource) -> tuple[EnvSource | None, Raw]:
    """The source of envs (None: the config), and the settings that follow from it."""
    if isinstance(env, str):
        return None, {"env": load_preset(env)["env"] if env in preset_names() else {"id": env}}
    check_source(env)
    rows = fixed_envs(env)
    each = [given(one) for one in (env if isinstance(env, list | tuple) else [env])]
    layer: Raw = {"env": {"id": "+".join(dict.fromkeys(one.name for one in each)), "eval_kwargs": {}}}
    layer["env"] |= {"kwargs": dict(each[0].kwargs), "max_episode_steps": each[0].max_episode_steps}
    return env, layer | ({} if rows is None else {"rollout": {"num_envs": rows}})


def check_fits(source: EnvSource | None, config: Config, settings: Raw) -> None:
    """Refuse settings that contradict the envs themselves, or that only an id can take."""
    if source is None:
        return
    count, asked = fixed_envs(source), config.rollout.num_envs
    if count not in (None, asked):
        raise ConfigError([f"rollout.num_envs: {asked}, but {count} envs were passed; leave the setting out"])
    unused = [name for name in _OF_IDS if settings.get("env", {}).get(name)]
    if unused:
        raise ConfigError([f"env.{name}: applies to an id, but an env was passed; {_OF_IDS[name]}" for name in unused])


def refuse_unknown(unknown: dict[str, Any], function: str, known: str) -> None:
    """An argument that a function does not have, perhaps that of another library."""
    if unknown:
        name = next(iter(unknown))
        raise ConfigError([f"{function}: unknown argument {name}; {function} takes {known}{of_call(name)}"])


def encoder_factory(encoder: nn.Module | EncoderFactory | None) -> EncoderFactory | None:
    """Actor and critic have separate encoders, so a module is copied."""
    if isinstance(encoder, nn.Module):
        module = encoder
        return lambda spec: deepcopy(module)
    return encoder


def check_modules(policy: Any, encoder: Any) -> None:
    """Refuse what is neither a module of the right kind nor None."""
    if isinstance(policy, str) and policy in SB3_POLICIES:
        raise ConfigError(
            [f"policy: leave {policy} out: the network follows from the spaces and the settings of policy"]
        )
    if policy is not None and not isinstance(policy, Policy):
        raise ConfigError([f"policy: pass a surefoot.Policy or a dict of settings, not {quoted(policy)}"])
    if encoder is not None and not callable(encoder):  # modules are callable too
        raise ConfigError([f"encoder: pass a kind, a module or a function that creates one, not {quoted(encoder)}"])


def whole_number(value: Any, what: str, at_least: int) -> int:
    """A whole number, which may be written as 1e6."""
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not is_number or not at_least <= value < 2**63 or value != int(value):
        raise ConfigError([f"{what}: pass a whole number of at least {at_least}, got {quoted(value)}"])
    return int(value)


def program_of(caller: str, episodes: int, seed: int, deterministic: bool, max_steps: int) -> Program:
    """Which episodes are shown."""
    return Program(
        whole_number(episodes, f"{caller}: episodes", at_least=1),
        whole_number(seed, f"{caller}: seed", at_least=0),
        deterministic,
        whole_number(max_steps, f"{caller}: max_steps", at_least=1),
    )


def as_path(path: Any) -> Path:
    """A path, or an error that says what to pass."""
    try:
        return Path(path)
    except TypeError as error:
        raise ConfigError([f"pass a path, such as 'agent.safetensors', not {quoted(path)}"]) from error


def writable_file(path: Any) -> Path:
    """A path at which there is no file yet, or one that may be replaced: not a folder, a device or a pipe."""
    target = as_path(path)
    if not target.name or (os.path.exists(target) and not os.path.isfile(target)):
        raise CheckpointError(f"cannot save {target}: it is not a file; pass one, such as 'agent.safetensors'")
    return target
