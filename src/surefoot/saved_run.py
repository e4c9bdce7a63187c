"""What a checkpoint says about its run: config, specs, and what of both may change when the run continues."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surefoot.compose import Specs
from surefoot.data.specs import ArraySpec, HybridSpec, spec_from_json
from surefoot.envs.engines.ray import RayEngine
from surefoot.envs.library import is_library
from surefoot.envs.make import PETTINGZOO
from surefoot.envs.protocol import VecEnv
from surefoot.errors import CheckpointError, ConfigError, EnvError
from surefoot.machine.ray_cluster import RUNNING
from surefoot.settings.config import Config
from surefoot.settings.layers import Raw, build_config
from surefoot.storage.saved import Saved, reading
from surefoot.storage.trust import Trust, is_trusted, names_in, trusting

FIXED_ON_RESUME = ("env", "policy", "normalize", "train.seed", "train.start_from")
"""Settings that a resumed run cannot change: they determine what the saved state means."""

THE_ENV = ("env.id", "env.kwargs", "env.max_episode_steps")
"""Settings that say which env it is: the state of one does not apply to another."""


@dataclass(frozen=True)
class SavedRun:
    """A checkpoint, with the config and the specs in it."""

    path: Path | str
    state: Mapping[str, Any]
    config: Config
    specs: Specs

    @staticmethod
    def of(found: tuple[Path, Mapping[str, Any]], trust: Trust) -> "SavedRun":
        """Read what a checkpoint says; kinds outside the package must be trusted."""
        path, state = found
        return SavedRun(path, state, *saved_setup(state, path, trust))


def saved_setup(state: Mapping[str, Any], path: Path, trust: Trust = False) -> tuple[Config, Specs]:
    """The config and specs inside a checkpoint; kinds outside the package must be trusted."""
    missing = [part for part in ("config", "obs_spec", "action_spec", "policy") if part not in state]
    if missing:
        raise CheckpointError(f"{path} is not a policy checkpoint: it has no {', '.join(missing)}")
    with reading(path), trusting(trust):
        Saved(state)["config"].entries()
        try:
            config = build_config(state["config"])
        except ConfigError as error:
            raise CheckpointError(f"its config is not valid: {'; '.join(error.problems)}") from error
        obs, action = spec_from_json(state["obs_spec"]), spec_from_json(state["action_spec"])
        if not isinstance(action, ArraySpec) or isinstance(obs, HybridSpec):
            raise CheckpointError("obs_spec must be one array or a dict of arrays, and action_spec one array or hybrid")
    return config, Specs(obs, action)


def check_spaces(env: VecEnv, specs: Specs) -> None:
    """Reject envs with other spaces than those of the policy."""
    if Specs(env.obs_spec, env.action_spec) != specs:
        raise EnvError(
            "the observation or action space of this env differs from those the agent was trained with; pass an env"
            " with the same spaces"
        )


def untrusted_env(config: Config, trust: Trust) -> str:
    """The first thing that creating the env of a checkpoint would import or load, if it is not trusted."""
    env_id = config.env.id
    module = env_id.removeprefix(PETTINGZOO).partition(":")[0]
    is_known = not is_library(env_id) and (":" not in env_id or module in sys.modules)
    paths = [text for text in names_in([config.env.kwargs, config.env.eval_kwargs]) if _is_path(text)]
    wanted = [*([] if is_known else [env_id]), *sorted(paths)]
    return next((name for name in wanted if not is_trusted(name, trust)), "")


def _is_path(text: str) -> bool:
    """Whether a text looks like a path or an address, or is the name of a file in the current folder."""
    return any(mark in text for mark in "/\\:~") or (bool(text) and "\0" not in text and os.path.lexists(text))


def untrusted_cluster(config: Config, trust: Trust) -> str:
    """The address of the cluster that training would connect to, if it is not trusted; `auto` is the user's own."""
    engine = config.rollout.engine
    address = engine.address if isinstance(engine, RayEngine.Settings) else None
    return "" if address in (None, RUNNING) or is_trusted(address, trust) else address


def resumed_config(saved: Config, changes: Raw) -> Config:
    """The config of a resumed run: allowed changes are applied; all others are rejected in one error."""
    wanted = build_config(saved.model_dump(mode="json"), changes)
    problems = [
        f"{setting}: cannot change on resume (the run has {old!r}, requested {new!r}); start a new run to change it"
        for setting, old, new in differing(saved, wanted, FIXED_ON_RESUME)
    ]
    if problems:
        raise ConfigError(problems)
    return wanted


def differing(saved: Config, wanted: Config, settings: Sequence[str]) -> Iterator[tuple[str, Any, Any]]:
    """Those of some settings or sections that differ between two configs, with both values."""
    for name in settings:
        section, _, only = name.partition(".")
        old, new = getattr(saved, section), getattr(wanted, section)
        for key in [only] if only else list(type(old).model_fields):
            if getattr(old, key) != getattr(new, key):
                yield f"{section}.{key}", getattr(old, key), getattr(new, key)
